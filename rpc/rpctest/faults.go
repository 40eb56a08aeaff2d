package rpctest

import (
	"errors"
	"io"
	"os"
	"slices"
	"syscall"

	"pi-cradle/internal/usererr"
	"pi-cradle/rpc"
)

// answered tells an error that the helper gave from one for want of an answer.
func answered(err error) bool {
	var refused *usererr.Error
	var failed *rpc.Error
	return errors.As(err, &refused) || errors.As(err, &failed)
}

func (p *Pi) current() *life {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.life
}

// Kill ends the helper with SIGKILL and waits for its end. Pi lives on; the next use starts another.
func (p *Pi) Kill() {
	l := p.current()
	p.change(func() { l.wanted = true })
	p.event("SIGKILL to the helper")
	l.kill()
	<-l.gone
	<-l.conn.Done()
}

// Restart starts a helper for the same session if there is none.
func (p *Pi) Restart() {
	p.t.Helper()
	if _, err := p.connect(); err != nil {
		p.t.Fatalf("restart: %v", err)
	}
}

// Die is the end of pi by SIGKILL, and of the helper with it when both is set; otherwise the helper's input ends, and it must go
// by itself. The Session can be opened by another Pi then.
func (p *Pi) Die(both bool) {
	p.change(p.dieLocked)
	if both {
		p.Kill()
	}
	p.Close()
}

func (p *Pi) dieLocked() {
	p.ending, p.session, p.running = true, nil, false
	p.end()
}

// Close ends the helper's input and waits for its end.
func (p *Pi) Close() {
	l := p.current()
	if l == nil {
		return
	}
	p.label(func() { _ = l.tap.Close() })
	<-l.gone
	<-l.conn.Done()
}

// EndInput ends the helper's input and leaves its output open.
func (p *Pi) EndInput() {
	p.t.Helper()
	p.event("end of the helper's input")
	l := p.current()
	var err error
	if both, ok := l.stream.(*pipes); ok {
		err = both.in.Close()
	} else {
		err = l.stream.Close()
	}
	if err != nil {
		p.t.Fatal(err)
	}
}

// PauseReading stops reading what the helper writes, until ResumeReading.
func (p *Pi) PauseReading() { p.current().tap.gate.close() }

// ResumeReading ends PauseReading.
func (p *Pi) ResumeReading() { p.current().tap.gate.open() }

// Freeze stops the helper's process where it is (SIGSTOP); Thaw lets it go on.
func (p *Pi) Freeze() { p.signal(syscall.SIGSTOP) }

// Thaw ends Freeze.
func (p *Pi) Thaw() { p.signal(syscall.SIGCONT) }

func (p *Pi) signal(sig os.Signal) {
	p.t.Helper()
	l := p.current()
	if l.signal == nil {
		p.t.Fatal("the helper is no process")
	}
	p.event("%v to the helper", sig)
	if err := l.signal(sig); err != nil {
		p.t.Fatal(err)
	}
}

// WriteRaw writes a line to the helper as it is, between whole frames. See Heard for what comes back.
func (p *Pi) WriteRaw(line string) {
	p.t.Helper()
	if _, err := io.WriteString(p.current().tap, line+"\n"); err != nil {
		p.t.Fatalf("write: %v", err)
	}
}

// Heard expects the helper to have written a line that contains all these texts, among those still recorded and in as much of
// each as is recorded.
func Heard(texts ...string) Expectation {
	return func(s State) (Verdict, string) {
		return met(s.recorder.heard(texts), s, "the helper wrote no line with %q", texts)
	}
}

func (r *recorder) heard(texts []string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.ContainsFunc(r.records, func(rec Record) bool { return rec.From == "helper" && containsAll(rec.Text, texts) })
}

// Transcript is everything that was said so far, for tests of tests.
func (p *Pi) Transcript() string { return p.recorder.String() }
