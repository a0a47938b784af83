package nomad_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/gorilla/websocket"

	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/control/store"
	"github.com/drover-project/drover/internal/httpapi"
	"github.com/drover-project/drover/internal/httpapi/nomad"
)

// BenchmarkExecOutput sends 5 MiB through one exec websocket, read by a client that only reads.
func BenchmarkExecOutput(b *testing.B) {
	st := store.New()
	node := newFakeNode()
	w := &world{store: st, node: node}
	w.seed()
	face := nomad.New(nomad.Config{State: storeState{st}, Agent: &fakeAgent{}, Nodes: w, Clock: clock.Wall{}, ID: benchID{}, Logger: quiet()})
	srv := httptest.NewServer(httpapi.Handler(httpapi.Config{Logger: quiet(), Clock: clock.Wall{}}, face))
	defer srv.Close()
	b.SetBytes(5 << 20)
	for b.Loop() {
		url := "ws" + srv.URL[4:] + "/v1/client/allocation/" + allocID + "/exec?task=t&command=%5B%22flood%22%5D"
		conn, _, err := websocket.DefaultDialer.Dial(url, nil)
		if err != nil {
			b.Fatal(err)
		}
		for {
			if _, _, err := conn.ReadMessage(); err != nil {
				break
			}
		}
		_ = conn.Close()
		<-node.sessions
	}
}

// BenchmarkReadJob is one cheap request without a network.
func BenchmarkReadJob(b *testing.B) {
	st := store.New()
	w := &world{store: st}
	w.seed()
	h := httpapi.Handler(httpapi.Config{Logger: quiet(), Clock: clock.Wall{}},
		nomad.New(nomad.Config{State: storeState{st}, Agent: &fakeAgent{}, Clock: clock.Wall{}}))
	r := httptest.NewRequest(http.MethodGet, "/v1/job/web", nil)
	r.Host = "127.0.0.1"
	b.ReportAllocs()
	for b.Loop() {
		h.ServeHTTP(httptest.NewRecorder(), r)
	}
}

// BenchmarkListJobs lists 10,000 jobs.
func BenchmarkListJobs(b *testing.B) {
	st := store.New()
	put(st, func(tx *store.Txn) {
		for i := range 10_000 {
			tx.PutJob(webJob(fmt.Sprintf("job-%05d", i)))
		}
	})
	h := httpapi.Handler(httpapi.Config{Logger: quiet(), Clock: clock.Wall{}},
		nomad.New(nomad.Config{State: storeState{st}, Agent: &fakeAgent{}, Clock: clock.Wall{}}))
	r := httptest.NewRequest(http.MethodGet, "/v1/jobs", nil)
	r.Host = "127.0.0.1"
	b.ReportAllocs()
	for b.Loop() {
		h.ServeHTTP(httptest.NewRecorder(), r)
	}
}

type benchID struct{}

func (benchID) New() string { return "x" }
