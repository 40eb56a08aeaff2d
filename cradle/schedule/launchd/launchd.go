// Package launchd renders tasks as launchd agents. It is pure.
package launchd

import (
	"fmt"
	"path/filepath"
	"strings"

	"pi-cradle/cradle/schedule/cron"
	"pi-cradle/cradle/schedule/timer"
	"pi-cradle/internal/usererr"
)

// Backend makes agents of the user with the given id, below a home directory.
type Backend struct {
	Home string
	UID  int
}

var _ timer.Backend = Backend{}

// maxEntries keeps an expression from becoming a property list that launchd chokes on.
const maxEntries = 500

// Label names an agent to launchd.
func Label(agentID, slug string) string { return "com.cradle." + agentID + "." + slug }

func (b Backend) Dir() string { return filepath.Join(b.Home, "Library/LaunchAgents") }

func (b Backend) Paths(agentID, slug string) []string {
	return []string{filepath.Join(b.Dir(), Label(agentID, slug)+".plist")}
}

func (b Backend) SlugOf(agentID, fileName string) (string, bool) {
	rest, ok := strings.CutPrefix(fileName, Label(agentID, ""))
	slug, plist := strings.CutSuffix(rest, ".plist")
	return slug, ok && plist && slug != ""
}

func (b Backend) Starts(content, folder, slug string) bool {
	return strings.Contains(content, text(4, "schedule")+text(4, "run")+text(4, folder)+text(4, slug))
}

func (b Backend) Install(agentID, slug string) []timer.Step {
	domain := fmt.Sprintf("gui/%d", b.UID)
	target := domain + "/" + Label(agentID, slug)
	return []timer.Step{
		{Argv: []string{"launchctl", "bootout", target}, MayFail: true},
		{Argv: []string{"launchctl", "bootstrap", domain, b.Paths(agentID, slug)[0]}},
		{Argv: []string{"launchctl", "enable", target}},
	}
}

func (b Backend) Remove(agentID, slug string) []timer.Step {
	return b.Install(agentID, slug)[:1]
}

func (b Backend) Inspect(agentID, slug string) []string {
	return []string{"launchctl", "print", fmt.Sprintf("gui/%d/%s", b.UID, Label(agentID, slug))}
}

func (b Backend) SearchPath() string {
	return timer.JoinPath(b.Home, "/opt/homebrew/bin", "/usr/local/bin", "/usr/bin", "/bin", "/usr/sbin", "/sbin")
}

func (b Backend) LingerProbe(string) []string { return nil }

func (b Backend) Files(job timer.Job) ([]timer.File, error) {
	if job.Timezone != "" {
		return nil, usererr.New("launchd fires in the machine's own time zone only, so timezone %q can't be honoured", job.Timezone).
			Hint("write the cron in local time and remove timezone from the task")
	}
	entries, err := calendar(job.Cron)
	if err != nil {
		return nil, err
	}
	path := b.SearchPath()
	if err := timer.Represent("launchd property list", path, job.Cradle, job.Folder, job.Slug, job.Cwd, job.Log); err != nil {
		return nil, err
	}
	var p plist
	p.WriteString(`<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0">
<dict>
`)
	p.key(2, "ProgramArguments")
	p.line(2, "<array>")
	for _, arg := range []string{job.Cradle, "schedule", "run", job.Folder, job.Slug} {
		p.WriteString(text(4, arg))
	}
	p.line(2, "</array>")
	p.pair("WorkingDirectory", job.Cwd)
	p.key(2, "StartCalendarInterval")
	p.line(2, "<array>")
	for _, e := range entries {
		p.line(4, "<dict>")
		for _, item := range e {
			p.key(6, item.name)
			p.line(6, fmt.Sprintf("<integer>%d</integer>", item.value))
		}
		p.line(4, "</dict>")
	}
	p.line(2, "</array>")
	p.pair("StandardOutPath", job.Log)
	p.pair("StandardErrorPath", job.Log)
	p.key(2, "EnvironmentVariables")
	p.line(2, "<dict>")
	p.key(4, "PATH")
	p.WriteString(text(4, path))
	p.line(2, "</dict>")
	p.key(2, "RunAtLoad")
	p.line(2, "<false/>")
	p.pair("ProcessType", "Background")
	p.pair("Label", Label(job.AgentID, job.Slug))
	p.WriteString("</dict>\n</plist>\n")
	return []timer.File{{Path: b.Paths(job.AgentID, job.Slug)[0], Content: p.String()}}, nil
}

type plist struct{ strings.Builder }

func (p *plist) line(indent int, s string) { p.WriteString(strings.Repeat(" ", indent) + s + "\n") }

func (p *plist) key(indent int, name string) { p.line(indent, "<key>"+name+"</key>") }

func (p *plist) pair(name, value string) {
	p.key(2, name)
	p.WriteString(text(2, value))
}

var escaper = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

func text(indent int, value string) string {
	return strings.Repeat(" ", indent) + "<string>" + escaper.Replace(value) + "</string>\n"
}

type item struct {
	name  string
	value int
}

// calendar is the product of the restricted fields: one entry per moment of the largest period. The first field varies slowest.
func calendar(e cron.Expr) ([][]item, error) {
	fields := []struct {
		name   string
		values cron.Field
	}{{"Minute", e.Minute}, {"Hour", e.Hour}, {"Day", e.Day}, {"Month", e.Month}, {"Weekday", e.Weekday}}
	count, restricted := 1, false
	for _, f := range fields {
		if f.values != nil {
			count *= len(f.values)
			restricted = true
		}
	}
	if !restricted {
		// An empty entry would mean every minute, but so that it can't be taken for a forgotten one they are spelled out.
		for minute := range 60 {
			fields[0].values = append(fields[0].values, minute)
		}
	}
	if count > maxEntries {
		return nil, usererr.New("cron expression expands to %d StartCalendarInterval dicts, over the %d-dict cap", count, maxEntries).
			Hint("write * for a field that lists almost all its values, a coarser step such as */15, or two tasks")
	}
	entries := [][]item{nil}
	for _, f := range fields {
		if f.values == nil {
			continue
		}
		var longer [][]item
		for _, e := range entries {
			for _, v := range f.values {
				longer = append(longer, append(e[:len(e):len(e)], item{f.name, v}))
			}
		}
		entries = longer
	}
	return entries, nil
}
