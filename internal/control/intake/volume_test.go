package intake

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/constraint"
	"github.com/drover-project/drover/internal/control/command"
	"github.com/drover-project/drover/internal/tables"
	"github.com/drover-project/drover/tenancy"
	"github.com/drover-project/drover/volume"
)

// volumeNode registers a node and, until the test ends, answers each request about a volume on it after a while.
func (b *bundle) volumeNode(id, pool string, after time.Duration, failure string) {
	n := &drover.Node{
		ID: id, NodePool: pool, Status: drover.NodeStatusReady, SchedulingEligibility: drover.NodeEligible,
		Attributes: map[string]string{"plugins.host_volume.mkdir.version": "1", "rack": id}, HostVolumes: map[string]*drover.HostVolumeInfo{},
	}
	b.propose(&command.RegisterNode{Node: n})
	ctx, end := context.WithCancel(b.t.Context())
	done := make(chan struct{})
	b.t.Cleanup(func() {
		end()
		<-done
	})
	go func() { // ends with ctx
		defer close(done)
		for {
			changed := b.store.Watch(tables.HostVolumes, "")
			said := *n
			said.HostVolumes = map[string]*drover.HostVolumeInfo{}
			for v := range b.store.Snapshot().HostVolumesOn(id) {
				said.HostVolumes[v.Name] = &drover.HostVolumeInfo{ID: v.ID, Path: "/" + v.Name, Report: &drover.HostVolumeReport{
					Namespace: v.Namespace, Wanted: v.Wanted, Failure: failure, Gone: failure == "" && v.State == volume.HostVolumeDeleting,
				}}
			}
			select {
			case <-time.After(after):
			case <-ctx.Done():
				return
			}
			_, _, _ = b.log.Propose(context.WithoutCancel(ctx), &command.RegisterNode{Node: &said})
			select {
			case <-changed:
			case <-ctx.Done():
				return
			}
		}
	}()
}

func named(name string) *volume.HostVolume { return &volume.HostVolume{Name: name} }

func inBubble(t *testing.T, do func(t *testing.T, b *bundle)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { do(t, bundleIn(t)) })
}

func TestAVolumeIsThereWhenItsRequestIsAnswered(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bundle) {
		b.volumeNode("n1", "default", time.Second, "")
		start := time.Now()
		v, o, err := b.CreateHostVolume(t.Context(), named("data"))
		require.NoError(t, err)
		require.NotZero(t, o.Index)
		require.Equal(t, []string{"n1", volume.HostVolumeReady, "/data", "default", "mkdir"},
			[]string{v.NodeID, v.State, v.HostPath, v.NodePool, v.PluginID})
		require.LessOrEqual(t, time.Since(start), 2*time.Second)

		again := *v
		again.RequestedCapacityMinBytes = 7
		changed, _, err := b.CreateHostVolume(t.Context(), &again)
		require.NoError(t, err)
		require.Equal(t, v.CreateIndex, changed.CreateIndex)
		require.EqualValues(t, 7, changed.RequestedCapacityMinBytes)
		for _, c := range []struct {
			change func(v *volume.HostVolume)
			code   drover.Code
			says   string
		}{
			{func(v *volume.HostVolume) { v.Name = "other" }, drover.Invalid, "Name cannot be changed"},
			{func(v *volume.HostVolume) { v.NodeID = "n2" }, drover.NotFound, `node "n2" not found`},
			{func(v *volume.HostVolume) { v.Namespace = "other" }, drover.NotFound, "nonexistent namespace"},
			{func(v *volume.HostVolume) { v.ID = "x" }, drover.Invalid, "ID: must be a UUID"},
			{func(v *volume.HostVolume) { v.PluginID = "zfs" }, drover.Invalid, "PluginID cannot be changed"},
		} {
			wrong := *v
			c.change(&wrong)
			_, _, err := b.CreateHostVolume(t.Context(), &wrong)
			code(t, c.code, err, c.says)
		}
		_, err = b.DeleteHostVolume(t.Context(), "other", v.ID, true)
		code(t, drover.NotFound, err, "host volume not found")
		_, err = b.DeleteHostVolume(t.Context(), "default", v.ID, false)
		require.NoError(t, err)
		require.Nil(t, b.store.Snapshot().HostVolume(v.ID))
	})
}

// Who knows the id of a volume that was forgotten does not get what its node still has of it, in a namespace of theirs.
func TestNobodyChoosesTheIDOfANewVolume(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bundle) {
		b.volumeNode("n1", "default", time.Second, "")
		b.propose(&command.UpsertNamespaces{Namespaces: []*tenancy.Namespace{{Name: "team"}}})
		v, _, err := b.CreateHostVolume(t.Context(), named("data"))
		require.NoError(t, err)
		_, err = b.DeleteHostVolume(t.Context(), "default", v.ID, true)
		require.NoError(t, err)
		_, _, err = b.CreateHostVolume(t.Context(), &volume.HostVolume{ID: v.ID, Name: "mine", Namespace: "team", NodeID: "n1"})
		code(t, drover.NotFound, err, "host volume not found")
		_, _, err = b.RegisterHostVolume(t.Context(), &volume.HostVolume{ID: v.ID, Name: "mine", NodeID: "n1", HostPath: "/srv"})
		code(t, drover.NotFound, err, "host volume not found")
	})
}

// What a node cannot make is no volume; what takes long is one, and the request's answer says that it is not ready.
func TestVolumesThatFailOrTakeLong(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bundle) {
		b.volumeNode("n1", "default", time.Second, "disk full")
		_, _, err := b.CreateHostVolume(t.Context(), named("data"))
		code(t, drover.Internal, err, `node n1 could not provide volume "data": disk full`)
		for v := range b.store.Snapshot().HostVolumes("*", "") {
			require.Fail(t, "it is forgotten", "%+v", v)
		}
	})
	inBubble(t, func(t *testing.T, b *bundle) {
		b.volumeNode("n1", "default", 40*time.Second, "")
		time.Sleep(time.Minute)
		v, _, err := b.CreateHostVolume(t.Context(), named("data"))
		require.NoError(t, err)
		require.Equal(t, volume.HostVolumePending, v.State)
		time.Sleep(time.Minute)
		require.Equal(t, volume.HostVolumeReady, b.store.Snapshot().HostVolume(v.ID).State)
		b.propose(&command.UpdateNodeStatuses{Nodes: []command.NodeStatus{{NodeID: "n1", Status: drover.NodeStatusDown}}})
		_, err = b.DeleteHostVolume(t.Context(), "default", v.ID, false)
		code(t, drover.Conflict, err, "node n1 is down: it can delete volume")
		_, err = b.DeleteHostVolume(t.Context(), "default", v.ID, true)
		require.NoError(t, err)
		require.Nil(t, b.store.Snapshot().HostVolume(v.ID))
	})
}

func TestWhereVolumesGo(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bundle) {
		_, _, err := b.CreateHostVolume(t.Context(), named("data"))
		code(t, drover.Conflict, err, "there are no nodes")
		b.propose(&command.UpsertNodePools{Pools: []*drover.NodePool{{Name: "fast"}}})
		b.volumeNode("n1", "default", 0, "")
		b.volumeNode("n2", "default", 0, "")
		b.volumeNode("n3", "fast", 0, "")
		b.propose(&command.UpsertNamespaces{Namespaces: []*tenancy.Namespace{{
			Name: "team", NodePoolConfiguration: &tenancy.NamespaceNodePoolConfig{Default: "fast", Allowed: []string{}},
		}}})
		used := map[string]int{}
		for range 3 {
			v, _, err := b.CreateHostVolume(t.Context(), named("data"))
			require.NoError(t, err)
			used[v.NodeID]++
		}
		require.Equal(t, map[string]int{"n1": 1, "n2": 1, "n3": 1}, used, "each name once, and where there are fewest")
		_, _, err = b.CreateHostVolume(t.Context(), named("data"))
		code(t, drover.Conflict, err, `3 × has a volume "data" already`)

		at := func(change func(v *volume.HostVolume)) (string, error) {
			v := named("x")
			change(v)
			made, _, err := b.CreateHostVolume(t.Context(), v)
			if err != nil {
				return "", err
			}
			_, undone := b.DeleteHostVolume(t.Context(), made.Namespace, made.ID, false)
			require.NoError(t, undone)
			return made.NodeID, nil
		}
		for want, change := range map[string]func(v *volume.HostVolume){
			"n3": func(v *volume.HostVolume) { v.NodePool = "fast" },
			"n2": func(v *volume.HostVolume) {
				v.Constraints = []*constraint.Constraint{{LTarget: "${attr.rack}", RTarget: "n2"}}
			},
			"n1": func(v *volume.HostVolume) { v.NodeID, v.NodePool = "n1", "default" },
		} {
			got, err := at(change)
			require.NoError(t, err)
			require.Equal(t, want, got)
		}
		got, err := at(func(v *volume.HostVolume) { v.Namespace = "team" })
		require.NoError(t, err)
		require.Equal(t, "n3", got)
		for says, change := range map[string]func(v *volume.HostVolume){
			`not in node pool "fast"`:                func(v *volume.HostVolume) { v.NodeID, v.NodePool = "n1", "fast" },
			`may not use its node pool`:              func(v *volume.HostVolume) { v.NodeID, v.Namespace = "n1", "team" },
			`NodePool: nonexistent node pool "slow"`: func(v *volume.HostVolume) { v.NodePool = "slow" },
			`nonexistent namespace "nobody"`:         func(v *volume.HostVolume) { v.Namespace = "nobody" },
			`node not found`:                         func(v *volume.HostVolume) { v.NodeID = "n9" },
			`3 × no host volume plugin "zfs"`:        func(v *volume.HostVolume) { v.PluginID = "zfs" },
			`distinct_hosts and distinct_property are`: func(v *volume.HostVolume) {
				v.Constraints = []*constraint.Constraint{{Operand: "distinct_hosts"}}
			},
			`3 × constraint ${attr.rack} = n9`: func(v *volume.HostVolume) {
				v.Constraints = []*constraint.Constraint{{LTarget: "${attr.rack}", RTarget: "n9"}}
			},
			`block-device is not supported`: func(v *volume.HostVolume) {
				v.RequestedCapabilities = []*volume.HostVolumeCapability{{AttachmentMode: "block-device"}}
			},
			`Parameters: must have at most 65536 bytes `: func(v *volume.HostVolume) {
				v.Parameters = map[string]string{"a": string(make([]byte, 1<<16))}
			},
		} {
			_, err := at(change)
			require.ErrorContains(t, err, says)
		}
		_, _, err = b.RegisterHostVolume(t.Context(), &volume.HostVolume{Name: "x", HostPath: "/srv"})
		code(t, drover.Invalid, err, "NodeID: must be set")
		_, _, err = b.RegisterHostVolume(t.Context(), &volume.HostVolume{Name: "x", NodeID: "n1", HostPath: "/srv/../etc"})
		code(t, drover.Invalid, err, `must not have ".."`)
		v, _, err := b.RegisterHostVolume(t.Context(), &volume.HostVolume{Name: "x", NodeID: "n1", HostPath: "/srv"})
		require.NoError(t, err)
		require.True(t, v.Registered)
		_, err = b.DeleteNamespace(t.Context(), "team")
		require.NoError(t, err)
	})
}
