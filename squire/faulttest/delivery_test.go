package faulttest

import (
	"fmt"
	"testing"

	"pi-cradle/rpc/rpctest"
	"pi-cradle/rpc/wire"
	"pi-cradle/squire/session"
)

// The helper dies with a result handed to pi and no answer: pi has put it into the conversation, or has not.
func TestKilledWhileAMessageIsOnItsWay(t *testing.T) {
	for name, responder := range map[string]rpctest.Responder{"shown": rpctest.Withhold, "not shown": rpctest.Ignore} {
		for _, piDies := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/pi dies %v", name, piDies), func(t *testing.T) {
				t.Parallel()
				w := newWorld(t)
				pi := w.open()
				child, _, _ := w.delegate(pi)
				pi.On(wire.HostSend, responder)
				child.Settle(rpctest.Done(answer))
				pi.Await(rpctest.Called(wire.HostSend, 1))
				if name == "shown" {
					pi.Await(rpctest.Sent(answer))
				}
				pi.On(wire.HostSend, nil)
				if piDies {
					pi.Die(true)
					pi = w.open()
				} else {
					pi.Kill()
				}
				pi.Await(rpctest.Sent(answer))
				pi.Settle(rpctest.Done("thanks"))
				if n := w.parent.Count(answer); n != 1 {
					t.Errorf("the answer was shown %d times", n)
				}
				if d := w.record()[0]; d.Result == nil || d.Result.Delivery != session.Processed {
					t.Errorf("left as %+v", d.Result)
				}
			})
		}
	}
}
