package taskapi

import (
	"net/http"
	"os"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

// BenchmarkIdle is what a socket costs that nobody uses: to open and close it, and in memory of the process.
func BenchmarkIdle(b *testing.B) {
	f := newFixture(func(http.ResponseWriter, *http.Request) {})
	folders, sockets := make([]string, b.N), make([]*Socket, b.N)
	for i := range folders {
		folders[i] = b.TempDir()
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	b.ResetTimer()
	for i := range sockets {
		var err error
		sockets[i], err = f.Open(b.Context(), Task{Folder: folders[i], User: os.Getuid()})
		require.NoError(b, err)
	}
	b.StopTimer()
	runtime.GC()
	runtime.ReadMemStats(&after)
	b.ReportMetric(float64(after.HeapInuse+after.StackInuse-before.HeapInuse-before.StackInuse)/float64(b.N), "resident-B/op")
	b.StartTimer()
	for _, s := range sockets {
		s.Close()
		s.Wait(b.Context())
	}
}
