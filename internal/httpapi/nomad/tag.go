package nomad

import (
	"net/http"
	"strings"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/httpapi"
)

// taggedPath takes /v1/job/ID/versions/NAME/tag apart.
func taggedPath(r *http.Request) (id, name string, ok bool) {
	rest, ok := strings.CutSuffix(strings.TrimPrefix(r.URL.EscapedPath(), jobRoot), "/tag")
	if !ok {
		return "", "", false
	}
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
	queryMeta
}

// tagVersion names a version, the latest if none is given, so that it is kept.
func (f *Face) tagVersion(w http.ResponseWriter, r *http.Request, id, name string) error {
	var b struct {
		Version     uint64
		Latest      bool
		Description string
	}
	if err := httpapi.DecodeJSON(r, &b); err != nil {
		return err
	}
	job := f.State.Snapshot().Job(namespaceOf(r), id)
	if job == nil {
		return drover.Errorf(drover.NotFound, "job not found")
	}
	if b.Latest && b.Version == 0 {
		b.Version = job.Version
	}
	o, err := f.Intake.TagJobVersion(r.Context(), drover.TagRequest{
		Namespace: job.Namespace, ID: id, Name: name, Description: b.Description, Version: b.Version,
	})
	if err != nil {
		return err
	}
	answer := tagAnswer{Name: name, Description: b.Description, queryMeta: queryMeta{Index: o.Index, KnownLeader: true}}
	for _, v := range f.State.Snapshot().JobVersions(job.Namespace, id) {
		if v.VersionTag != nil && v.VersionTag.Name == name {
			answer.TaggedTime = v.VersionTag.TaggedTime
		}
	}
	return f.written(w, r, o, answer)
}

func (f *Face) untagVersion(w http.ResponseWriter, r *http.Request, id, name string) error {
	o, err := f.Intake.UntagJobVersion(r.Context(), namespaceOf(r), id, name)
	if err != nil {
		return err
	}
	return f.written(w, r, o, tagAnswer{queryMeta: queryMeta{Index: o.Index, KnownLeader: true}})
}
