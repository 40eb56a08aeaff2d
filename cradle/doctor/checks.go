package doctor

// cradleChecks are the programs a run or a schedule needs.
func cradleChecks(platform string) []check {
	probe := []string{"--version"}
	checks := []check{
		{
			name: "pi", required: true, version: probe,
			missing: "install it with `npm install -g @earendil-works/pi-coding-agent`",
		},
		{
			name: "nono", version: probe,
			missing: "required for sandboxed runs: `cargo install nono-cli --locked`",
		},
		{
			name: "sbx", version: []string{"version"},
			missing: "required for sbx-backend runs: install Docker Sandboxes",
		},
		{
			name: "mise", version: probe,
			missing: "recommended for keeping pi and Node current per project",
		},
	}
	switch platform {
	case "darwin":
		checks = append(checks, check{
			name: "launchctl", version: probe,
			missing: "recommended for `cradle schedule` — launchd LaunchAgents: put /bin on PATH",
		})
	case "linux":
		checks = append(checks, check{
			name: "systemctl", version: probe,
			missing: "recommended for `cradle schedule` — systemd --user timers: install systemd",
		})
	}
	return checks
}

// squireChecks are the programs that delegating to other sessions needs.
func squireChecks() []check {
	return []check{
		{
			name: "tmux", version: []string{"-V"}, least: release{3, 2},
			missing:  "delegates run in tmux windows: install tmux 3.2 or newer",
			outdated: "delegates need tmux 3.2 or newer: upgrade tmux",
		},
		{
			name:    "cradle-helper",
			missing: "pi's squire extension starts it: put it on PATH or beside cradle",
		},
		{
			name: "node", version: []string{"--version"}, least: release{22, 19},
			missing:  "pi from npm needs Node 22.19 or newer first on PATH",
			outdated: "pi from npm needs Node 22.19 or newer first on PATH",
		},
	}
}
