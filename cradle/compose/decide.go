package compose

import (
	"pi-cradle/cradle/folder"
	"pi-cradle/internal/jsjson"
)

// decision is the backend and the network policy of a run.
type decision struct {
	backend     Backend
	why         string
	network     *folder.Network
	networkWhy  string
	warnings    []string
	grants      folder.Grants
	rules       []string
	fromSandbox string // the file that grants and rules come from
}

func decide(f *folder.Folder, flags Flags) decision {
	d := decision{}
	d.backend, d.why = d.chooseBackend(f, flags)
	posture := f.Nono
	d.fromSandbox = "sandbox/nono.json"
	if d.backend == Sbx {
		posture, d.fromSandbox = f.Sbx, "sandbox/sbx.json"
	}
	d.grants, d.rules = posture.Grants, posture.Rules
	d.network, d.networkWhy = d.chooseNetwork(posture.Network, flags)
	if d.backend == None && d.network.Restricts() {
		d.warn("network policy has no effect without the sandbox — pi runs with no network isolation (--sandbox to enforce it)")
	}
	return d
}

func (d *decision) warn(text string) { d.warnings = append(d.warnings, text) }

// chooseBackend is the order of precedence: the first that has something to say decides.
func (d *decision) chooseBackend(f *folder.Folder, flags Flags) (Backend, string) {
	forced := flags.Sandbox != nil && *flags.Sandbox
	nono, sbx := f.Nono.Stance == folder.Enabled, f.Sbx.Stance == folder.Enabled
	switch {
	case flags.Sandbox != nil && !forced:
		return None, "--no-sandbox"
	case flags.Backend != None:
		return flags.Backend, "--sandbox-backend " + string(flags.Backend)
	case nono && sbx:
		d.warn("both sandbox/nono.json and sandbox/sbx.json declare a sandbox — using nono (pass --sandbox-backend sbx to override)")
		return Nono, "sandbox/nono.json, which goes before sandbox/sbx.json"
	case nono:
		return Nono, "sandbox/nono.json"
	case sbx:
		return Sbx, "sandbox/sbx.json"
	case forced:
		return Nono, "--sandbox"
	}
	reason := "sandbox/nono.json or sbx.json not found"
	if f.Nono.Stance == folder.Disabled {
		reason = "sandbox disabled by sandbox/nono.json"
	} else if f.Sbx.Stance == folder.Disabled {
		reason = "sandbox disabled by sandbox/sbx.json"
	}
	if flags.Offline || len(flags.AllowHost) > 0 {
		d.warn(reason + " — sandbox forced on to enforce the requested network policy (--no-sandbox to override)")
		return Nono, "--offline and --allow-host need a sandbox"
	}
	d.warn(reason + " — agent is running without OS isolation (--sandbox to force enable)")
	return None, reason
}

// chooseNetwork replaces, never merges: the flags beat the folder whole.
func (d *decision) chooseNetwork(declared *folder.Network, flags Flags) (*folder.Network, string) {
	hosts := make([]string, 0, len(flags.AllowHost))
	for _, h := range flags.AllowHost {
		if h = jsjson.Trim(h); h != "" {
			hosts = append(hosts, h)
		}
	}
	if len(hosts) < len(flags.AllowHost) {
		d.warn("--allow-host entries must be non-empty — blanks ignored")
	}
	switch {
	case flags.Offline:
		block := true
		return &folder.Network{Block: &block}, "--offline"
	case len(hosts) > 0:
		return &folder.Network{AllowDomain: hosts}, "--allow-host"
	case declared != nil:
		return declared, d.fromSandbox
	}
	return nil, "no policy declared"
}
