package jobs

import (
	"net/http"
	"strings"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/httpapi"
	"github.com/drover-project/drover/internal/httpapi/nomad/answer"
)

// taggedPath takes /v1/job/ID/versions/NAME/tag apart.
func taggedPath(r *http.Request) (id, name string, ok bool) {
	rest, ok := strings.CutSuffix(strings.TrimPrefix(r.URL.EscapedPath(), jobRoot), "/tag")
	if !ok {
		return "", "", false
	}
	// The last one counts, because an id may itself have this text in it.
	at := strings.LastIndex(rest, "/versions/")
	if at <= 0 {
		return "", "", false
	}
	name = rest[at+len("/versions/"):]
	return unescape(rest[:at]), unescape(name), name != "" && !strings.Contains(name, "/")
}

// tagAnswer tells of a version's tag; of one that was taken away it has nothing.
type tagAnswer struct {
	Name, Description string
	TaggedTime        int64 // unix ns
	answer.Meta
}

// tagVersion names a version, the latest if none is given, so that it is kept.
func (f *face) tagVersion(w http.ResponseWriter, r *http.Request, id, name string) error {
	var b struct {
		Version     uint64
		Latest      bool
		Description string
	}
	if err := httpapi.DecodeJSON(r, &b); err != nil {
		return err
	}
	job := f.State.Snapshot().Job(answer.Namespace(r), id)
	if job == nil {
		return drover.Errorf(drover.NotFound, "job not found")
	}
	// 0 is a version too: only Latest says that none was named.
	if b.Latest && b.Version == 0 {
		b.Version = job.Version
	}
	o, err := f.Versions.TagJobVersion(r.Context(), drover.TagRequest{
		Namespace: job.Namespace, ID: id, Name: name, Description: b.Description, Version: b.Version,
	})
	if err != nil {
		return err
	}
	// The intake chooses the time, so it is read back from the state.
	tag := tagAnswer{Name: name, Description: b.Description, Meta: answer.NewMeta(o.Index)}
	for _, v := range f.State.Snapshot().JobVersions(job.Namespace, id) {
		if v.VersionTag != nil && v.VersionTag.Name == name {
			tag.TaggedTime = v.VersionTag.TaggedTime
		}
	}
	return f.Written(w, r, o, tag)
}

// untagVersion takes the tag off a version, which may then be forgotten.
func (f *face) untagVersion(w http.ResponseWriter, r *http.Request, id, name string) error {
	o, err := f.Versions.UntagJobVersion(r.Context(), answer.Namespace(r), id, name)
	if err != nil {
		return err
	}
	return f.Written(w, r, o, tagAnswer{Meta: answer.NewMeta(o.Index)})
}
