// Package rpctest is a fake pi: it plays the extension's side of the wire against a real helper, and is what most tests of the
// helper stand on.
//
//	pi := rpctest.Start(t, rpctest.Options{Env: env})
//	pi.StartSession(rpctest.NewSession(agentDir, cwd))
//	pi.Tool("delegate", map[string]any{"agent": "scout", "task": "look around"})
//	pi.Await(rpctest.Sent("what was found"))
//
// The helper is the test binary, executed again: TestMain hands over to the helper's own main when the first argument is "serve".
// With Options.Serve it runs inside the test instead, over pipes; the test's body is the same.
//
// A Session is what pi has on disk and outlives everything: the helper, and the Pi that opened it. Pi puts into it what host.send
// and host.prompt ask for, by pi's rules: at once when idle, at the end of the run otherwise. Runs are played by Options.Run, or by
// the test through Begin and Settle.
//
// Nothing sleeps. Await looks at an expectation whenever something has happened; it ends when that is met, when it can't be met any
// more, or at the deadline. Everything said in either direction is recorded, and printed when the test fails. At the end of a test
// the helper must go by itself when its input ends, with exit code 0, and no goroutine may be left of what the test started.
package rpctest
