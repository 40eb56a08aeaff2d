// Package systemd renders tasks as systemd user timers. It is pure.
package systemd

import (
	"fmt"
	"path/filepath"
	"strings"

	"pi-cradle/cradle/schedule/cron"
	"pi-cradle/cradle/schedule/timer"
	"pi-cradle/internal/usererr"
)

// Backend makes user units below a home directory.
type Backend struct{ Home string }

var _ timer.Backend = Backend{}

const kind = "systemd unit"

func base(agentID, slug string) string { return "cradle-" + agentID + "-" + slug }

// Dir is fixed: a timer has to be found again by a process with another environment.
func (b Backend) Dir() string { return filepath.Join(b.Home, ".config/systemd/user") }

func (b Backend) Paths(agentID, slug string) []string {
	path := filepath.Join(b.Dir(), base(agentID, slug))
	return []string{path + ".service", path + ".timer"}
}

func (b Backend) SlugOf(agentID, fileName string) (string, bool) {
	rest, ok := strings.CutPrefix(fileName, base(agentID, ""))
	if !ok {
		return "", false
	}
	if slug, ok := strings.CutSuffix(rest, ".service"); ok {
		return slug, slug != ""
	}
	return "", false
}

func (b Backend) Starts(content, folder, slug string) bool {
	_, args, ok := strings.Cut(content, "\nExecStart=")
	args, _, _ = strings.Cut(args, "\n")
	return ok && strings.HasSuffix(args, execArgs("schedule", "run", folder, slug))
}

func (b Backend) Install(agentID, slug string) []timer.Step {
	return []timer.Step{
		{Argv: []string{"systemctl", "--user", "daemon-reload"}},
		{Argv: []string{"systemctl", "--user", "enable", "--now", base(agentID, slug) + ".timer"}},
	}
}

func (b Backend) Remove(agentID, slug string) []timer.Step {
	return []timer.Step{
		{Argv: []string{"systemctl", "--user", "disable", "--now", base(agentID, slug) + ".timer"}, MayFail: true},
		{Argv: []string{"systemctl", "--user", "daemon-reload"}},
	}
}

func (b Backend) Inspect(agentID, slug string) []string {
	return []string{"systemctl", "--user", "status", base(agentID, slug) + ".timer", base(agentID, slug) + ".service"}
}

func (b Backend) SearchPath() string {
	return timer.JoinPath(b.Home, "/usr/local/bin", "/usr/bin", "/bin", "/usr/sbin", "/sbin")
}

func (b Backend) LingerProbe(user string) []string {
	return []string{"loginctl", "show-user", user, "--property=Linger"}
}

func (b Backend) Files(job timer.Job) ([]timer.File, error) {
	path := b.SearchPath()
	if err := timer.Represent(kind, job.Name, job.Cwd, path, job.Cradle, job.Folder, job.Slug, job.Log, job.Timezone); err != nil {
		return nil, err
	}
	// These two stand unquoted at the end of a line: there a backslash joins the next line, and white space is cut.
	for _, v := range []string{job.Cwd, job.Log} {
		if strings.TrimRight(v, " \t\\") != v {
			return nil, usererr.New("%s values cannot end in a space or a backslash, got %s", kind, timer.Quote(v)).Hint("rename the folder")
		}
	}
	if strings.ContainsAny(job.Cradle, "'\"\\\t") {
		return nil, usererr.New("systemd starts no program whose path holds a quote, a backslash or a tab, got %s", timer.Quote(job.Cradle)).Hint("install cradle elsewhere, such as in ~/.local/bin")
	}
	paths := b.Paths(job.AgentID, job.Slug)
	service := lines(
		"[Unit]",
		"Description="+percent(job.Name),
		"",
		"[Service]",
		"Type=oneshot",
		"WorkingDirectory="+percent(job.Cwd),
		"Environment="+assignment("PATH="+path),
		"ExecStart="+quote(job.Cradle)+" "+execArgs("schedule", "run", job.Folder, job.Slug),
		"StandardOutput=append:"+percent(job.Log),
		"StandardError=append:"+percent(job.Log),
	)
	timerUnit := lines(
		"[Unit]",
		"Description="+percent(job.Name),
		"",
		"[Timer]",
		"OnCalendar="+OnCalendar(job.Cron, job.Timezone),
		"Persistent=true",
		"",
		"[Install]",
		"WantedBy=timers.target",
	)
	return []timer.File{{Path: paths[0], Content: service}, {Path: paths[1], Content: timerUnit}}, nil
}

func lines(all ...string) string { return strings.Join(all, "\n") + "\n" }

// percent keeps systemd from taking a % for the start of a specifier.
func percent(value string) string { return strings.ReplaceAll(value, "%", "%%") }

var escaper = strings.NewReplacer(`\`, `\\`, `"`, `\"`)

// assignment quotes an environment assignment only if it would be split or unescaped otherwise.
func assignment(value string) string {
	if !strings.ContainsAny(value, " \t\"'\\") {
		return percent(value)
	}
	return quote(value)
}

func quote(word string) string { return `"` + escaper.Replace(percent(word)) + `"` }

// execArgs writes the arguments of a command line. The program before them is only quoted: systemd expands no variable there.
func execArgs(args ...string) string {
	quoted := make([]string, len(args))
	for i, arg := range args {
		// Inside a word systemd leaves a lone $ as it is, but expands ${X} and reads $$ as one.
		if strings.Contains(arg, "${") || strings.Contains(arg, "$$") {
			arg = strings.ReplaceAll(arg, "$", "$$")
		}
		quoted[i] = quote(arg)
	}
	return strings.Join(quoted, " ")
}

var weekdays = []string{"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"}

// OnCalendar writes an expression as a calendar event, in explicit lists: steps and wrapping ranges differ between versions of
// systemd. An empty timezone leaves the event in the machine's zone.
func OnCalendar(e cron.Expr, timezone string) string {
	text := fmt.Sprintf("*-%s-%s %s:%s:00", values(e.Month), values(e.Day), values(e.Hour), values(e.Minute))
	if e.Weekday != nil {
		var names []string
		for _, d := range e.Weekday {
			names = append(names, weekdays[d])
		}
		text = strings.Join(names, ",") + " " + text
	}
	if timezone != "" {
		text += " " + timezone
	}
	return text
}

func values(f cron.Field) string {
	if f == nil {
		return "*"
	}
	words := make([]string, len(f))
	for i, v := range f {
		words[i] = fmt.Sprintf("%02d", v)
	}
	return strings.Join(words, ",")
}
