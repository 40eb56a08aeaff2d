package squire

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"pi-cradle/internal/testenv"
	"pi-cradle/rpc/rpctest"
	"pi-cradle/squire/gitws"
	"pi-cradle/squire/records"
	"pi-cradle/squire/session"
	"pi-cradle/squire/tmux"
	"pi-cradle/squire/tmux/tmuxtest"
)

// past is a session with n delegations that ended long ago.
func past(b *testing.B, n int) *rpctest.Session {
	b.Helper()
	agentDir := filepath.Join(b.TempDir(), "agent")
	s := rpctest.NewSession(agentDir, b.TempDir())
	workspace, _ := json.Marshal(gitws.Workspace{Mode: gitws.Inherited, Cwd: s.Start.Cwd, Git: gitws.Outside()})
	var children session.Children
	for i := range n {
		id := fmt.Sprintf("%08d-0000-4000-8000-000000000000", i)
		children.Delegations = append(children.Delegations, &session.Delegation{
			ID: id, Agent: "scout", Name: "scout-" + id[:8], Model: "test/model", Thinking: "off", Cwd: s.Start.Cwd, AutoExit: true,
			SessionDir: s.Start.SessionDir, SessionFile: filepath.Join(s.Start.SessionDir, id+".jsonl"), Request: "r" + id,
			Window: session.Window{Socket: "/none", ServerPID: 1, ID: "@1", Pane: "%1"}, Workspace: workspace, Phase: session.Ended,
			Result: &session.Outcome{Status: "done", Delivery: session.Processed, Path: "/none/" + id},
		})
	}
	if err := records.In(agentDir).SaveChildren(s.ID(), children); err != nil {
		b.Fatal(err)
	}
	return s
}

// bytesRead is how much a helper below this process has read so far, of files and pipes; 0 where the system does not tell.
func bytesRead() float64 {
	for _, pid := range testenv.Below(os.Getpid(), "serve") {
		data, _ := os.ReadFile(fmt.Sprintf("/proc/%d/io", pid))
		line, _, _ := strings.Cut(string(data), "\n")
		n, _ := strconv.ParseFloat(strings.TrimPrefix(line, "rchar: "), 64)
		return n
	}
	return 0
}

// BenchmarkStatus is delegation_status and BenchmarkRestore the start of a session, as pi sees them, with so many past delegations.
func BenchmarkStatus(b *testing.B) {
	for _, n := range []int{1, 50, 500} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			pi := rpctest.Start(b, rpctest.Options{Env: []string{"HOME=" + b.TempDir(), "PATH=" + os.Getenv("PATH")}})
			pi.StartSession(past(b, n))
			pi.Tool("delegation_status", map[string]any{})
			before := bytesRead()
			b.ResetTimer()
			for range b.N {
				pi.Tool("delegation_status", map[string]any{})
			}
			b.StopTimer()
			b.ReportMetric((bytesRead()-before)/float64(b.N), "read-B/op")
		})
	}
}

func BenchmarkRestore(b *testing.B) {
	for _, n := range []int{0, 2000} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			s := past(b, n)
			pi := rpctest.Start(b, rpctest.Options{Env: []string{"HOME=" + b.TempDir(), "PATH=" + os.Getenv("PATH")}})
			pi.StartSession(s)
			before := bytesRead()
			b.ResetTimer()
			for range b.N {
				if err := pi.EndSession("resume"); err != nil {
					b.Fatal(err)
				}
				pi.StartSession(s)
			}
			b.StopTimer()
			b.ReportMetric((bytesRead()-before)/float64(b.N), "read-B/op")
		})
	}
}

// BenchmarkTick is one look at tmux, for delegates in so many windows of one server.
func BenchmarkTick(b *testing.B) {
	for _, n := range []int{1, 100} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			server := tmuxtest.Start(b, "bench", "")
			for range n - 1 {
				server.Run("new-window", "-d", "sleep", "1000")
			}
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			caller, err := tmux.FromEnv(server.Getenv)
			if err != nil {
				b.Fatal(err)
			}
			windows, err := caller.Server.Windows(ctx)
			if err != nil || len(windows) != n {
				b.Fatalf("%d windows, %v", len(windows), err)
			}
			where := map[string]session.Window{}
			for _, w := range windows {
				where[w.Pane] = locator(caller.Server.Socket, w)
			}
			b.ResetTimer()
			for range b.N {
				for id, s := range sightings(ctx, where) {
					if s.presence != session.Alive {
						b.Fatalf("%s is %v", id, s.presence)
					}
				}
			}
		})
	}
}
