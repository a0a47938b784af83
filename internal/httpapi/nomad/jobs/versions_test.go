package jobs

import (
	"fmt"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
)

// Versions are compared with the one before, or all of them with one, itself too, as Nomad's command line counts on.
func TestVersionsAreComparedWithOne(t *testing.T) {
	t.Parallel()
	f := &face{Config: Config{DiffJobs: func(old, now *drover.Job) any { return fmt.Sprint(old.Version, now.Version) }}}
	list := []*drover.Job{{Version: 3}, {Version: 2, VersionTag: &drover.JobVersionTag{Name: "golden"}}, {Version: 1}}
	for query, want := range map[string][]any{
		"": {"2 3", "1 2"}, "?diff_tag=golden": {"2 3", "2 2", "2 1"}, "?diff_version=1": {"1 3", "1 2", "1 1"},
		"?diff_tag=lead": nil, "?diff_version=7": nil,
	} {
		base, err := baseOf(httptest.NewRequest("GET", "/v1/job/x/versions"+query, nil))
		require.NoError(t, err, query)
		got, err := f.diffsOf(list, base)
		require.Equal(t, want, got, query)
		require.Equal(t, want == nil, drover.CodeOf(err) == drover.NotFound, query)
	}
	for _, query := range []string{"?diff_version=x", "?diff_version=-1", "?diff_tag=a&diff_version=1"} {
		_, err := baseOf(httptest.NewRequest("GET", "/v1/job/x/versions"+query, nil))
		require.Equal(t, drover.Invalid, drover.CodeOf(err), query)
	}
}
