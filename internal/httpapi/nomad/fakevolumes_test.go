package nomad_test

import (
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/control/store"
	"github.com/drover-project/drover/volume"
)

const (
	volumeID = "cccccccc-bbbb-4ccc-8ddd-000000000001"
	claimID  = "cccccccc-bbbb-4ccc-8ddd-000000000002"
)

func (i *fakeIntake) DeleteVolumeClaim(_ context.Context, namespace, id string) (drover.Outcome, error) {
	c := i.store.Snapshot().VolumeClaim(id)
	if c == nil || c.Namespace != namespace {
		return drover.Outcome{}, drover.Errorf(drover.NotFound, "volume claim not found: %q", id)
	}
	return drover.Outcome{Index: put(i.store, func(t *store.Txn) { t.DeleteVolumeClaim(c) })}, nil
}

func (i *fakeIntake) CreateHostVolume(_ context.Context, v *volume.HostVolume) (*volume.HostVolume, drover.Outcome, error) {
	made := *v
	made.Complete()
	if err := made.Validate(); err != nil {
		return nil, drover.Outcome{}, err
	}
	index := i.store.Index() + 1
	made.ID, made.NodeID, made.NodePool, made.State, made.HostPath = volumeID, nodeID, "default", volume.HostVolumeReady, "/volumes/1"
	made.CreateIndex, made.ModifyIndex, made.Wanted = index, index, index
	put(i.store, func(t *store.Txn) {
		t.PutHostVolume(&made)
		t.PutVolumeClaim(&volume.HostVolumeClaim{
			ID: claimID, Namespace: made.Namespace, JobID: "db", TaskGroupName: "g", AllocID: allocID, AllocName: "db.g[0]",
			VolumeID: volumeID, VolumeName: made.Name, CreateIndex: index, ModifyIndex: index,
		})
	})
	return &made, drover.Outcome{Index: index}, nil
}

func (i *fakeIntake) RegisterHostVolume(ctx context.Context, v *volume.HostVolume) (*volume.HostVolume, drover.Outcome, error) {
	v.Registered = true
	return i.CreateHostVolume(ctx, v)
}

func (i *fakeIntake) DeleteHostVolume(_ context.Context, namespace, id string, force bool) (drover.Outcome, error) {
	v := i.store.Snapshot().HostVolume(id)
	if v == nil || v.Namespace != namespace {
		return drover.Outcome{}, drover.Errorf(drover.NotFound, "host volume not found: %q", id)
	}
	index := put(i.store, func(t *store.Txn) { t.DeleteHostVolume(v) })
	_, _ = i.took("delete %s %v", id, force)
	return drover.Outcome{Index: index}, nil
}

// Volumes are those of a namespace: who has no right there neither sees nor changes one, whatever the query says.
func TestVolumesNeedRightsInTheirNamespace(t *testing.T) {
	t.Parallel()
	w, h := tenants(t)
	h.give(t, "reads", `namespace "other" { capabilities = ["host-volume-read"] }`)
	h.give(t, "creates", `namespace "other" { capabilities = ["host-volume-create"] }`)
	h.give(t, "registers", `namespace "other" { capabilities = ["host-volume-register"] }`)
	h.give(t, "deletes", `namespace "other" { capabilities = ["host-volume-delete"] }`)
	create, register := "/v1/volume/host/create", "/v1/volume/host/register"
	made := `{"Volume":{"Name":"data","Namespace":"other"}}`
	known := `{"Volume":{"Name":"data","Namespace":"other","NodeID":"` + nodeID + `","HostPath":"/srv"}}`
	one := "/v1/volume/host/" + volumeID
	for _, c := range []struct {
		method, path, body string
		may                []string
	}{
		{"PUT", create, made, []string{"db", "creates", "registers"}},
		{"PUT", create + "?namespace=default", made, []string{"db", "creates", "registers"}},
		{"PUT", create + "?namespace=other", `{"Volume":{"Name":"data"}}`, []string{"db", "creates", "registers"}},
		{"PUT", register, known, []string{"db", "registers"}},
		{"GET", "/v1/volumes?namespace=other", "", []string{"db", "both", "reads", "creates", "registers"}},
		{"GET", one + "?namespace=other", "", []string{"db", "both", "reads", "creates", "registers"}},
		{"DELETE", one + "?namespace=other", "", []string{"db", "deletes"}},
		{"GET", "/v1/volumes/claims?namespace=other", "", []string{"db", "both", "reads", "creates", "registers"}},
		{"DELETE", "/v1/volumes/claim/" + claimID + "?namespace=other", "", []string{"db"}},
	} {
		for _, token := range []string{"web", "db", "both", "none", "reads", "creates", "registers", "deletes"} {
			if c.method != "PUT" {
				require.Equal(t, 200, w.as("db", "PUT", create, made).Code)
			}
			want := 403
			if slices.Contains(c.may, token) {
				want = 200
			}
			reply := w.as(token, c.method, c.path, c.body)
			require.Equal(t, want, reply.Code, "%s: %s %s: %s", token, c.method, c.path, reply.Body)
		}
	}
	require.Equal(t, 200, w.as("db", "PUT", create, made).Code)
	require.Equal(t, "[]", w.as("web", "GET", "/v1/volumes?namespace=*", "").Body.String())
	require.Contains(t, w.as("both", "GET", "/v1/volumes?namespace=*", "").Body.String(), volumeID)
	require.Equal(t, "[]", w.as("web", "GET", "/v1/volumes/claims?namespace=*", "").Body.String())
	require.Equal(t, 404, w.as("web", "DELETE", "/v1/volumes/claim/"+claimID, "").Code)
	require.Equal(t, 404, w.as("web", "GET", one, "").Code, "another namespace's is none of this one")
	require.Equal(t, 404, w.as("web", "DELETE", one, "").Code)
}
