package rpc

import (
	"context"
	"fmt"
	"net"
	"strings"
	"testing"
)

func BenchmarkEcho(b *testing.B) {
	near, far := net.Pipe()
	mux := NewMux()
	Concurrent(mux, "echo", func(_ context.Context, p textParams) (textParams, error) { return p, nil })
	server, client := NewConn(far, mux, b.Logf), NewConn(near, NewMux(), b.Logf)
	defer server.Close(context.Background())
	defer client.Close(context.Background())
	for _, size := range []int{10, 10 << 10, 1 << 20, 8000 << 10} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			text := textParams{strings.Repeat("x", size)}
			b.SetBytes(int64(size))
			for b.Loop() {
				var got textParams
				if err := client.Call(context.Background(), "echo", text, &got); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
