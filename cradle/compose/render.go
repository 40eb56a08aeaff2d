package compose

import (
	"path/filepath"
	"strings"
)

// DryRun is the preview of a plan, one step per line in the order of a real run, the command last. Package extensions are not
// in it: which there are is known once the packages are installed.
func (p *Plan) DryRun() string {
	var b strings.Builder
	line := func(key, text string) { b.WriteString(key + ": " + text + "\n") }
	for _, w := range p.writes() {
		line("write", w.Path)
	}
	steps, _ := p.Steps("")
	for _, s := range steps {
		line(string(s.Kind), Quote(s.Argv))
	}
	if p.Packages != nil {
		line("write", p.Packages.manifest())
		line("install", p.Packages.install())
	}
	if p.Stdin != nil && *p.Stdin != "" {
		line("stdin", quote(*p.Stdin))
	}
	line("cwd", p.CWD)
	for _, e := range p.Env {
		b.WriteString(e.Name + "=" + quote(e.Value) + " ")
	}
	b.WriteString(Quote(Argv(p.Command(nil))) + "\n")
	return b.String()
}

// writes are the generated files, in the order in which they are made.
func (p *Plan) writes() []Write {
	writes := p.Extensions
	if p.Profile != nil {
		writes = append(writes[:len(writes):len(writes)], *p.Profile)
	}
	return writes
}

func (k *Packages) manifest() string { return filepath.Join(k.Dir, "package.json") }

// Command is the installer's command line, to run in Dir. Life-cycle scripts of packages never run on the host.
func (k *Packages) Command() []string { return []string{k.Installer, "install", "--ignore-scripts"} }

func (k *Packages) install() string {
	return strings.Join(k.Command(), " ") + " (" + k.Dir + "): " + strings.Join(k.specs(), ", ")
}

func (k *Packages) specs() []string {
	specs := make([]string, len(k.Specs))
	for i, s := range k.Specs {
		specs[i] = s.Spec()
	}
	return specs
}

// Quote joins argv into a line that a POSIX shell reads back as the same words.
func Quote(argv []string) string {
	words := make([]string, len(argv))
	for i, a := range argv {
		words[i] = quote(a)
	}
	return strings.Join(words, " ")
}

func quote(s string) string {
	plain := s != ""
	for i := 0; i < len(s) && plain; i++ {
		c := s[i]
		plain = c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || strings.IndexByte("_./:@%+=,-", c) >= 0
	}
	if plain {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
