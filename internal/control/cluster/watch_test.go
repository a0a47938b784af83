package cluster

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	clusternoun "github.com/drover-project/drover/cluster"
	"github.com/drover-project/drover/internal/control/autopilot"
	"github.com/drover-project/drover/internal/control/members"
	"github.com/drover-project/drover/internal/control/raftlog"
)

// hearsay is gossip of two servers, of which the second was given the first one's address.
type hearsay struct {
	Gossip
	list []members.Member
}

func (h hearsay) Self() members.Self     { return members.Self{} }
func (h hearsay) List() []members.Member { return h.list }

// A server that failed does not seem to answer because another has its address: autopilot would never take it out.
func TestAnotherDoesNotAnswerForAServerThatFailed(t *testing.T) {
	t.Parallel()
	list := []members.Member{
		{Self: members.Self{Name: "old", ID: "id-old", Region: "g", RPCAddr: "10.0.0.1:4647"}, Status: members.Failed},
		{Self: members.Self{Name: "new", ID: "id-new", Region: "g", RPCAddr: "10.0.0.1:4647"}, Status: members.Alive},
	}
	c := New(Config{}, Deps{
		Gossip: hearsay{list: list}, Identity: third{},
		Ask: func(context.Context, members.Member) (Status, error) {
			return Status{ID: "id-new", Reads: members.Versions{Min: 1, Max: 3}, Progress: raftlog.Progress{LastIndex: 7}}, nil
		},
	})
	watch := c.Watch(clusternoun.DefaultAutopilot)
	_, err := watch.Progress(t.Context(), autopilot.Known{ID: "id-old", Name: "old.g"})
	require.Equal(t, drover.NotFound, drover.CodeOf(err))
	require.ErrorContains(t, err, "another server has its address by now")
	p, err := watch.Progress(t.Context(), autopilot.Known{ID: "id-new", Name: "new.g"})
	require.NoError(t, err)
	require.EqualValues(t, 7, p.LastIndex)
}

// third is a cluster whose servers write version 3.
type third struct{ Identity }

func (third) Version() int { return 3 }
