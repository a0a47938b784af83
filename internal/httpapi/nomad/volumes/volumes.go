package volumes

import (
	"cmp"
	"context"
	"iter"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/httpapi"
	"github.com/drover-project/drover/internal/httpapi/nomad/answer"
	"github.com/drover-project/drover/internal/policy"
	"github.com/drover-project/drover/internal/tables"
	"github.com/drover-project/drover/volume"
)

// Intake changes volumes; control/intake implements it.
type Intake interface {
	CreateHostVolume(ctx context.Context, v *volume.HostVolume) (*volume.HostVolume, drover.Outcome, error)
	RegisterHostVolume(ctx context.Context, v *volume.HostVolume) (*volume.HostVolume, drover.Outcome, error)
	DeleteHostVolume(ctx context.Context, namespace, id string, force bool) (drover.Outcome, error)
	DeleteVolumeClaim(ctx context.Context, namespace, id string) (drover.Outcome, error)
}

// face answers the group's requests.
type face struct {
	*answer.Cluster
	intake Intake
}

// Routes lists the group's routes.
func Routes(c *answer.Cluster, in Intake) []httpapi.Route {
	f := &face{c, in}
	read := httpapi.InNamespace(policy.HostVolumeRead)
	return []httpapi.Route{
		{Pattern: "GET /v1/volumes", Where: httpapi.Reads, Need: read, Handle: f.list},
		{Pattern: "GET /v1/volume/host/{id}", Where: httpapi.Reads, Need: read, Handle: f.read},
		{
			Pattern: "PUT,POST /v1/volume/host/create", Where: httpapi.Leader,
			Need: httpapi.OfObject(policy.HostVolumeCreate), Handle: f.create,
		},
		{
			Pattern: "PUT,POST /v1/volume/host/register", Where: httpapi.Leader,
			Need: httpapi.OfObject(policy.HostVolumeRegister), Handle: f.register,
		},
		{
			Pattern: "DELETE /v1/volume/host/{id}", Where: httpapi.Leader,
			Need: httpapi.InNamespace(policy.HostVolumeDelete), Handle: f.remove,
		},
		{Pattern: "GET /v1/volumes/claims", Where: httpapi.Reads, Need: read, Handle: f.claims},
		{
			Pattern: "DELETE /v1/volumes/claim/{id}", Where: httpapi.Leader,
			Need: httpapi.InNamespace(policy.HostVolumeWrite), Handle: f.unclaim,
		},
	}
}

// list answers GET /v1/volumes with the host volumes of a namespace, or of all ("*"); node_id and node_pool narrow it, and prefix is that
// of an id or a name.
func (f *face) list(w http.ResponseWriter, r *http.Request) error {
	query := r.URL.Query()
	kind, node, pool := query.Get("type"), query.Get("node_id"), query.Get("node_pool")
	if kind != "" && kind != "host" && kind != "csi" {
		return drover.Errorf(drover.Invalid, "type: must be host or csi, got %q", kind)
	}
	return answer.Lister[*volume.HostVolume, *volume.HostVolumeStub]{
		On: []answer.Source{{Table: tables.HostVolumes}},
		Items: func(q answer.Query, s answer.Snapshot) iter.Seq[*volume.HostVolume] {
			if kind == "csi" {
				return slices.Values[[]*volume.HostVolume](nil)
			}
			return s.HostVolumes(q.Namespace, "")
		},
		ID: func(v *volume.HostVolume) string { return v.ID },
		Keep: func(v *volume.HostVolume) bool {
			prefix := query.Get("prefix")
			return strings.HasPrefix(v.NodeID, node) && (pool == "" || pool == v.NodePool) &&
				(strings.HasPrefix(v.ID, prefix) || strings.HasPrefix(v.Name, prefix))
		},
		View: func(v *volume.HostVolume, _ answer.Snapshot) *volume.HostVolumeStub { return v.Stub() },
		Sees: answer.In(policy.HostVolumeRead, func(v *volume.HostVolume) string { return v.Namespace }),
	}.Serve(f.Cluster, w, r)
}

// read answers GET /v1/volume/host/ID with the volume and the allocations that mount it.
func (f *face) read(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("id")
	find := func(q answer.Query, s answer.Snapshot) (*volume.HostVolume, uint64) {
		v := s.HostVolume(id)
		if v == nil || v.Namespace != q.Namespace {
			return nil, 0
		}
		shown := *v
		shown.Allocations = []*drover.AllocationListStub{}
		for a := range s.AllocationsByNode(v.NodeID) {
			if !a.ClientTerminal() && v.MountedBy(a) {
				shown.Allocations = append(shown.Allocations, a.Stub())
			}
		}
		return &shown, v.ModifyIndex
	}
	return answer.Single(f.Cluster, w, r, answer.Source{Table: tables.HostVolumes, Key: id}, "host volume", find)
}

// create answers PUT /v1/volume/host/create.
func (f *face) create(w http.ResponseWriter, r *http.Request) error {
	return f.want(w, r, policy.HostVolumeCreate, Intake.CreateHostVolume)
}

// register answers PUT /v1/volume/host/register.
func (f *face) register(w http.ResponseWriter, r *http.Request) error {
	return f.want(w, r, policy.HostVolumeRegister, Intake.RegisterHostVolume)
}

// want hands on the volume of the request's body, if the caller has the right in its namespace.
func (f *face) want(
	w http.ResponseWriter, r *http.Request, right policy.Capability,
	do func(Intake, context.Context, *volume.HostVolume) (*volume.HostVolume, drover.Outcome, error),
) error {
	var b struct{ Volume *volume.HostVolume }
	if err := httpapi.DecodeJSON(r, &b); err != nil {
		return err
	}
	if b.Volume == nil {
		return drover.Errorf(drover.Invalid, "Volume: missing volume definition")
	}
	b.Volume.Namespace = cmp.Or(b.Volume.Namespace, answer.Namespace(r))
	if err := httpapi.Allow(r.Context(), b.Volume.Namespace, right); err != nil {
		return err
	}
	v, o, err := do(f.intake, r.Context(), b.Volume)
	if err != nil {
		return err
	}
	return f.Written(w, r, o, struct {
		Volume   *volume.HostVolume
		Warnings string
	}{v, ""})
}

// remove answers DELETE /v1/volume/host/ID.
func (f *face) remove(w http.ResponseWriter, r *http.Request) error {
	force := false
	if text := r.URL.Query().Get("force"); text != "" {
		var err error
		if force, err = strconv.ParseBool(text); err != nil {
			return drover.Errorf(drover.Invalid, "force: must be true or false, got %q", text)
		}
	}
	o, err := f.intake.DeleteHostVolume(r.Context(), answer.Namespace(r), r.PathValue("id"), force)
	if err != nil {
		return err
	}
	return f.Written(w, r, o, struct{}{})
}

// claims answers GET /v1/volumes/claims with those of a namespace, or of all ("*"); job_id, task_group and volume_name narrow it.
func (f *face) claims(w http.ResponseWriter, r *http.Request) error {
	query := r.URL.Query()
	job, group, name := query.Get("job_id"), query.Get("task_group"), query.Get("volume_name")
	return answer.Lister[*volume.HostVolumeClaim, *volume.HostVolumeClaim]{
		On: []answer.Source{{Table: tables.VolumeClaims}},
		Items: func(q answer.Query, s answer.Snapshot) iter.Seq[*volume.HostVolumeClaim] {
			return s.VolumeClaims(q.Namespace, query.Get("prefix"))
		},
		ID: func(c *volume.HostVolumeClaim) string { return c.ID },
		Keep: func(c *volume.HostVolumeClaim) bool {
			return (job == "" || job == c.JobID) && (group == "" || group == c.TaskGroupName) && (name == "" || name == c.VolumeName)
		},
		View: func(c *volume.HostVolumeClaim, _ answer.Snapshot) *volume.HostVolumeClaim { return c },
		Sees: answer.In(policy.HostVolumeRead, func(c *volume.HostVolumeClaim) string { return c.Namespace }),
	}.Serve(f.Cluster, w, r)
}

// unclaim answers DELETE /v1/volumes/claim/ID.
func (f *face) unclaim(w http.ResponseWriter, r *http.Request) error {
	o, err := f.intake.DeleteVolumeClaim(r.Context(), answer.Namespace(r), r.PathValue("id"))
	if err != nil {
		return err
	}
	return f.Written(w, r, o, struct{}{})
}
