package session

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// The random walk plays one parent and a few delegates through mail, crash, reload, stop and poll. The world around the state
// machines is the honest one: mail is claimed after it was recorded, a crash loses memory and what was under way, and a pi that
// is killed may lose the last, unwritten entries of its conversation. At the end faults stop and everything runs to rest. Then
// every delegation must have been told of exactly once.

const (
	schedules = 20_000
	steps     = 60
	maxKids   = 3
)

type sender struct{ id, from, to, request, status string }

type kid struct {
	id      string
	disk    string // Own as saved, "" before the first save
	birth   Own
	mem     *State
	prompts []string // request ids in its conversation
	todo    []Action // actions not yet carried out
	alive   bool     // its pi runs
	opened  bool     // its window was opened
	exited  bool     // its launcher left a record
	replied bool     // an answer of its own was posted
	busy    bool
}

type world struct {
	disk   string // Children as saved
	mem    *State
	conv   []string // outcomes in the conversation, as "delegation/kind"
	ids    []string // messages in the conversation
	byID   map[string][]string
	todo   []Action
	kids   []*kid
	mail   []sender // unclaimed, by any receiver
	serial int
	trace  []string
	now    int64
}

func newWorld() *world {
	w := &world{byID: map[string][]string{}}
	w.startParent()
	return w
}

func (w *world) log(format string, args ...any) {
	w.trace = append(w.trace, fmt.Sprintf(format, args...))
}

func (w *world) startParent() {
	w.mem = &State{}
	if w.disk != "" {
		if err := json.Unmarshal([]byte(w.disk), &w.mem.Children); err != nil {
			panic(err)
		}
	}
	w.todo = nil
	for _, d := range slices.Clone(w.mem.Children.Delegations) {
		if k := w.kid(d.ID); d.Phase == Launching && k != nil && k.opened {
			w.parent(Opened{ID: d.ID, Window: Window{Name: d.ID}}) // its launcher has taken the launch file
		}
	}
	found := map[string]bool{}
	for _, id := range w.mem.Unconfirmed() {
		found[id] = slices.Contains(w.ids, id)
	}
	w.parent(Restored{Messages: found})
}

func (w *world) kid(id string) *kid {
	for _, k := range w.kids {
		if k.id == id {
			return k
		}
	}
	return nil
}

func (w *world) parent(e Event) {
	for _, a := range w.mem.Apply(e) {
		if _, ok := a.(SaveChildren); ok {
			data, _ := json.Marshal(w.mem.Children)
			w.disk = string(data)
			continue
		}
		if show, ok := a.(Show); ok {
			for _, it := range show.Items {
				kind := "result"
				if it.Outcome == it.Delegation.Gone {
					kind = "gone"
				}
				w.byID[show.ID] = append(w.byID[show.ID], it.Delegation.ID+"/"+kind)
			}
		}
		w.todo = append(w.todo, a)
	}
}

func (w *world) startKid(k *kid) {
	own := k.birth
	if k.disk != "" {
		own = Own{}
		if err := json.Unmarshal([]byte(k.disk), &own); err != nil {
			panic(err)
		}
		own.Identity = k.birth.Identity
	}
	k.mem, k.todo = &State{Own: &own}, nil
	found := map[string]bool{}
	for _, t := range own.Tasks {
		found[t.Request] = slices.Contains(k.prompts, t.Request)
	}
	w.child(k, Restored{Prompts: found})
}

func (w *world) child(k *kid, e Event) {
	for _, a := range k.mem.Apply(e) {
		if _, ok := a.(SaveOwn); ok {
			data, _ := json.Marshal(k.mem.Own)
			k.disk = string(data)
			continue
		}
		k.todo = append(k.todo, a)
	}
}

// launch opens a delegation; cut says after which step everything dies.
func (w *world) launch(cut int) {
	if len(w.kids) == maxKids {
		return
	}
	w.serial++
	id := fmt.Sprintf("d%d", w.serial)
	w.log("launch %s, cut %d", id, cut)
	k := &kid{id: id, birth: Own{AutoExit: true, Identity: Identity{Parent: "p"}}}
	w.kids = append(w.kids, k)
	w.parent(Opening{&Delegation{ID: id, Phase: Launching}})
	if cut == 1 {
		w.startParent()
		return
	}
	request := "r" + id
	w.mail = append(w.mail, sender{id: request, from: "p", to: id})
	w.parent(Opened{ID: id, Request: request})
	if cut == 2 {
		w.startParent()
		return
	}
	k.opened, k.alive = true, true
	if cut == 3 {
		w.startParent()
	} else {
		w.parent(Opened{ID: id, Window: Window{Pane: id}})
	}
	w.startKid(k)
}

// act carries out the first waiting action of a delegate. With lost, its helper dies right after the effect.
func (w *world) act(k *kid, lost bool) {
	if !k.alive || len(k.todo) == 0 {
		return
	}
	a := k.todo[0]
	k.todo = k.todo[1:]
	w.log("%s does %T, lost %v", k.id, a, lost)
	var answer Event
	switch a := a.(type) {
	case Prompt:
		k.prompts = append(k.prompts, a.Task.Request)
		k.busy = true
		answer = Prompted{a.Task.Request}
	case Reply:
		w.serial++
		w.mail = append(w.mail, sender{id: fmt.Sprintf("e%d", w.serial), from: k.id, to: a.To, request: strings.Join(a.Outbox.Requests, ","), status: a.Outbox.Status})
		k.replied = true
		answer = ReplySent{}
	case ExitPi:
		w.die(k, true)
		return
	}
	switch {
	case lost:
		w.startKid(k)
	case answer != nil:
		w.child(k, answer)
	}
}

func (w *world) die(k *kid, record bool) {
	if !k.alive {
		return
	}
	w.log("%s dies, record %v", k.id, record)
	k.alive, k.exited, k.busy, k.mem, k.todo = false, record, false, nil, nil
}

// show carries out the first waiting action of the parent.
func (w *world) show(fate int) {
	if len(w.todo) == 0 {
		return
	}
	a := w.todo[0]
	w.todo = w.todo[1:]
	w.log("parent does %T, fate %d", a, fate)
	switch a := a.(type) {
	case Show:
		switch fate {
		case 1:
			w.parent(NotShown{a.ID})
			return
		case 2: // dies before
			w.startParent()
			return
		}
		w.ids = append(w.ids, a.ID)
		w.conv = append(w.conv, w.byID[a.ID]...)
		if fate == 3 { // dies after
			w.startParent()
			return
		}
		w.parent(Shown{a.ID})
	case RetryLater:
		w.parent(Retry{})
	case LookAgain:
		w.poll(true, true)
	}
}

// receive takes the first waiting envelope of a receiver in. With lost, the process dies between recording and claiming.
func (w *world) receive(to string, lost bool) {
	i := slices.IndexFunc(w.mail, func(m sender) bool { return m.to == to })
	if i < 0 {
		return
	}
	m := w.mail[i]
	k := w.kid(to)
	if k != nil && !k.alive {
		return
	}
	w.log("%s receives %s, lost %v", to, m.id, lost)
	if k != nil {
		w.child(k, TaskArrived{Request: m.id})
	} else {
		w.now++
		w.parent(Replied{Envelope: m.id, From: m.from, InReplyTo: strings.Split(m.request, ","), Status: m.status, At: w.now})
	}
	switch {
	case !lost:
		w.mail = slices.Delete(w.mail, i, i+1)
	case k != nil:
		w.startKid(k)
	default:
		w.startParent()
	}
}

func (w *world) poll(scanned, asked bool) {
	w.log("poll, scanned %v, asked %v", scanned, asked)
	if scanned {
		for n := len(w.mail); n > 0; n-- {
			w.receive("p", false)
		}
	}
	for _, k := range w.kids {
		if k.exited {
			w.parent(Exited{ID: k.id})
		}
	}
	seen := map[string]Presence{}
	for _, k := range w.kids {
		switch {
		case !asked:
		case k.alive:
			seen[k.id] = Alive
		default:
			seen[k.id] = Absent
		}
	}
	w.parent(Observed{Scanned: scanned, Windows: seen})
}

func (w *world) settleKid(k *kid, s Settled) {
	if !k.alive || !k.busy {
		return
	}
	w.log("%s settles %+v", k.id, s)
	k.busy = false
	w.child(k, s)
}

// step plays one random thing.
func (w *world) step(op, arg int) {
	var k *kid
	if len(w.kids) > 0 {
		k = w.kids[arg%len(w.kids)]
	}
	switch {
	case op < 8:
		w.launch([]int{0, 0, 0, 0, 0, 1, 2, 3}[op])
	case op < 24:
		w.receive("p", op == 8)
	case op < 32:
		w.show([]int{0, 0, 0, 0, 1, 2, 3, 0}[op-24])
	case op < 36:
		w.log("parent settles, aborted %v", op == 32)
		w.parent(Settled{Aborted: op == 32})
	case op < 38:
		w.log("parent restarts")
		w.startParent()
	case op < 39:
		lose := min(arg%3, len(w.ids))
		w.log("parent is killed and loses %d messages", lose)
		for _, id := range w.ids[len(w.ids)-lose:] {
			if !w.settledBefore(id) {
				w.ids = slices.DeleteFunc(w.ids, func(x string) bool { return x == id })
				w.conv = slices.DeleteFunc(w.conv, func(x string) bool { return slices.Contains(w.byID[id], x) })
			}
		}
		w.startParent()
	case op < 44:
		w.poll(op != 39, op != 40)
	case k == nil:
	case op < 52:
		w.receive(k.id, op == 44)
	case op < 60:
		w.act(k, op == 52)
	case op < 68:
		w.settleKid(k, []Settled{
			{StopReason: "stop", Text: "answer"}, {StopReason: "stop", Text: "answer"}, {StopReason: "stop", Text: "answer"},
			{StopReason: "stop", Text: "answer"}, {Error: "500"}, {Aborted: true}, {StopReason: "length", Text: "ans"}, {StopReason: "stop"},
		}[op-60])
		if op == 65 && k.alive {
			k.busy = true // the user steers it on
		}
	case op < 70:
		if k.alive {
			w.log("%s helper restarts", k.id)
			w.startKid(k)
		}
	case op < 72:
		w.die(k, op == 70)
	}
}

// settledBefore says that a message's outcomes are processed: pi has written them long ago.
func (w *world) settledBefore(id string) bool {
	for _, d := range w.mem.Children.Delegations {
		for _, o := range []*Outcome{d.Result, d.Gone} {
			if o != nil && o.Message == id && o.Delivery == Processed {
				return true
			}
		}
	}
	return false
}

const ops = 72

// rest lets everything run to its end without faults.
func (w *world) rest() {
	w.log("-- no more faults")
	for range 40 {
		for _, k := range w.kids {
			if k.alive {
				w.receive(k.id, false)
				for len(k.todo) > 0 && k.alive {
					w.act(k, false)
				}
				if k.alive && (k.busy || len(k.mem.Own.Tasks) > 0) {
					k.busy = true
					w.settleKid(k, Settled{StopReason: "stop", Text: "answer"})
				}
				if k.alive && !k.mem.Own.AutoExit && len(k.mem.Own.Tasks) == 0 && k.mem.Own.Outbox == nil {
					w.die(k, true) // its user closes it
				}
			}
		}
		w.poll(true, true)
		for len(w.todo) > 0 {
			w.show(0)
		}
		w.parent(Settled{StopReason: "stop"})
	}
}

// verdict says what is wrong at the end, or "".
func (w *world) verdict() string {
	count := map[string]int{}
	for _, key := range w.conv {
		if count[key]++; count[key] > 1 {
			return key + " was shown twice"
		}
	}
	for _, d := range w.mem.Children.Delegations {
		k := w.kid(d.ID)
		result, gone := count[d.ID+"/result"], count[d.ID+"/gone"]
		switch {
		case d.Unfinished():
			return d.ID + " never ended"
		case k.replied && result != 1:
			return fmt.Sprintf("%s answered and its result was shown %d times", d.ID, result)
		case !k.replied && gone != 1:
			return fmt.Sprintf("%s did not answer and was called gone %d times", d.ID, gone)
		}
	}
	for _, k := range w.kids {
		if k.opened && w.mem.Find(k.id) == nil {
			return k.id + " ran and is on no record"
		}
	}
	return ""
}

func play(schedule [][2]int) (verdict string, trace []string) {
	w := newWorld()
	for _, s := range schedule {
		w.step(s[0], s[1])
	}
	w.rest()
	return w.verdict(), w.trace
}

// shrink drops steps as long as the schedule still fails.
func shrink(schedule [][2]int) [][2]int {
	for i := 0; i < len(schedule); {
		shorter := slices.Delete(slices.Clone(schedule), i, i+1)
		if v, _ := play(shorter); v != "" {
			schedule = shorter
		} else {
			i++
		}
	}
	return schedule
}

func TestRandomWalk(t *testing.T) {
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 1))
	for range schedules {
		schedule := make([][2]int, steps)
		for i := range schedule {
			schedule[i] = [2]int{rng.IntN(ops), rng.IntN(60)}
		}
		if v, _ := play(schedule); v != "" {
			short := shrink(schedule)
			v, trace := play(short)
			t.Fatalf("seed %d: %s\nschedule %v\n%s", seed, v, short, strings.Join(trace, "\n"))
		}
	}
}
