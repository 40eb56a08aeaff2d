package folder

import (
	"path/filepath"
	"slices"
	"strings"

	"pi-cradle/internal/jsjson"
	"pi-cradle/internal/usererr"
)

// Settings is what the folder's settings.json says and pi's command line can carry. A nil string was not given; an empty one was.
type Settings struct {
	Provider, Model, Thinking *string
	Packages                  []Package // in declared order, repeats kept
	Installer                 string    // npm, pnpm, yarn or bun
}

var (
	thinkingLevels = []string{"off", "minimal", "low", "medium", "high", "xhigh", "max"}
	installers     = []string{"npm", "pnpm", "yarn", "bun"}
)

func (l *loader) settings() {
	l.Settings.Installer = installers[0]
	path := filepath.Join(l.Dir, settingsFile)
	o := l.object(path)
	if o == nil {
		return
	}
	r := reader{l, path, o}
	if extra := o.Others("defaultProvider", "defaultModel", "defaultThinkingLevel", "packages", "npmCommand"); extra != nil {
		l.warn("%s: keys cradle does not map are ignored — pi reads them from ~/.pi/agent/settings.json or the project's .pi/settings.json, not the agent folder: %s", path, strings.Join(extra, ", "))
	}
	l.Settings.Provider = r.text("defaultProvider")
	l.Settings.Model = r.text("defaultModel")
	if v, ok := o.Get("defaultThinkingLevel"); ok {
		if s, isText := v.(string); isText && slices.Contains(thinkingLevels, s) {
			l.Settings.Thinking = &s
		} else {
			l.warn("%s: defaultThinkingLevel must be one of %s — ignored", path, strings.Join(thinkingLevels, ", "))
		}
	}
	if v, ok := o.Get("packages"); ok {
		l.Settings.Packages = l.packages(path, v)
	}
	if v, ok := o.Get("npmCommand"); ok {
		words, _ := v.([]any)
		name := ""
		if len(words) == 1 {
			name, _ = words[0].(string)
		}
		if slices.Contains(installers, name) {
			l.Settings.Installer = name
		} else {
			l.warn("%s: npmCommand must be a single-element array naming one of %s — ignored", path, strings.Join(installers, ", "))
		}
	}
}

// models keeps pi's provider format as it is, save that a model without a cost gets the zero cost that pi's own reader of this
// file fills in and its extension interface demands.
func (l *loader) models() {
	path := filepath.Join(l.Dir, modelsFile)
	o := l.object(path)
	if o == nil {
		return
	}
	r := reader{l, path, o}
	v, _ := o.Get("providers")
	providers, ok := v.(*jsjson.Object)
	if !ok {
		l.fail(usererr.New(`%s must contain a "providers" object`, path))
		return
	}
	r.noOthers("providers")
	for _, name := range providers.Keys() {
		v, _ := providers.Get(name)
		provider, ok := v.(*jsjson.Object)
		if !ok {
			continue
		}
		list, _ := provider.Get("models")
		models, _ := list.([]any)
		for _, v := range models {
			if model, ok := v.(*jsjson.Object); ok && !model.Has("cost") {
				model.SetFirst("cost", zeroCost())
			}
		}
	}
	l.Models = providers
}

func zeroCost() *jsjson.Object {
	cost := jsjson.NewObject()
	for _, key := range []string{"input", "output", "cacheRead", "cacheWrite"} {
		cost.Set(key, 0)
	}
	return cost
}
