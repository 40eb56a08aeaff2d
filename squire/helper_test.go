package squire

import (
	"context"
	"fmt"
	"log"
	"net"
	"os"
	"testing"
	"time"

	"pi-cradle/rpc"
	"pi-cradle/rpc/wire"
)

// The test binary is a helper too, with methods for what nothing in a session asks for yet.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == "serve" {
		os.Exit(serveForTests())
	}
	os.Exit(m.Run())
}

const (
	testTrust = "test.trust" // resolveTrust
	testOffer = "test.offer" // offerTrust
)

// testSocket names the variable with the path at which a helper of the real pi takes those methods.
const testSocket = "SQUIRE_TEST_SOCKET"

func addTestMethods(service *Service, mux *rpc.Mux) {
	rpc.Concurrent(mux, testTrust, with(service, func(l *live, ctx context.Context, s testSite) (testTrustResult, error) {
		r, err := l.resolveTrust(ctx, s.site())
		return testTrustResult{r.approve, r.leftOut}, err
	}))
	rpc.Concurrent(mux, testOffer, with(service, func(l *live, _ context.Context, _ wire.Empty) (wire.Empty, error) {
		return wire.Empty{}, l.offerTrust()
	}))
}

func serveTest(service *Service, listener net.Listener) {
	mux := rpc.NewMux()
	addTestMethods(service, mux)
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		rpc.NewConn(conn, mux, log.Printf)
	}
}

type testTrustResult struct {
	Approve bool `json:"approve"`
	LeftOut bool `json:"leftOut"`
}

func serveForTests() int {
	stream := rpc.Stdio()
	service, mux := New(Config{Binary: os.Args[0], Home: os.Getenv("HOME"), Getenv: os.Getenv, Now: time.Now, Logf: log.Printf})
	addTestMethods(service, mux)
	conn := rpc.NewConn(stream, mux, log.Printf)
	service.Connect(conn)
	if path := os.Getenv(testSocket); path != "" {
		listener, err := net.Listen("unix", path)
		if err != nil {
			log.Print(err)
			return 1
		}
		defer listener.Close()
		go serveTest(service, listener)
	}
	<-conn.Done()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := service.Close(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	_ = conn.Close(ctx)
	return 0
}
