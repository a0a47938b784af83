package artifact

import (
	"cmp"
	"maps"
	"net/url"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/drover-project/drover"
)

// Kinds of sources.
const (
	kindHTTP = "http"
	kindFile = "file"
	kindGit  = "git"
	kindS3   = "s3"
	kindGCS  = "gcs"
)

// source is where an artifact comes from.
type source struct {
	kind    string
	url     *url.URL          // nil for a repository that is named as user@host:path
	text    string            // the address of a repository
	subdir  string            // in an archive or a repository; "" = all of it
	options map[string]string // those that are not the server's business
}

// common are the options of all sources, and known those of one kind beside them. What else stands in an http address is the
// server's; elsewhere it is an error.
var (
	common = []string{"checksum", "archive", "filename", "mode"} // constant
	known  = map[string][]string{                                // constant
		kindHTTP: nil, kindFile: nil, kindGit: {"ref", "sshkey", "depth"},
		kindS3:  {"region", "version", "aws_access_key_id", "aws_access_key_secret", "aws_access_token"},
		kindGCS: {"generation"},
	}
)

// parse reads an address as Nomad's users write it, and collects the options: those of the block, and those of the query.
// Errors: Invalid, and NotImplemented for kinds that are not there.
func parse(raw string, options map[string]string) (*source, error) {
	forced, rest, isForced := strings.Cut(raw, "::")
	if isForced && strings.ContainsAny(forced, "/?:@.") {
		forced, rest, isForced = "", raw, false // such as an IPv6 address in a query
	}
	if !isForced {
		forced, rest = detect(raw)
	}
	s := &source{kind: forced, options: map[string]string{}}
	rest, s.subdir = cutSubdir(rest)
	if s.kind == kindGit && !strings.Contains(rest, "://") {
		var query string
		s.text, query, _ = strings.Cut(rest, "?")
		return s, s.take(query, options)
	}
	u, err := url.Parse(rest)
	if err != nil {
		return nil, drover.Errorf(drover.Invalid, "source: %w", err)
	}
	s.url = u
	if err := s.settle(rest); err != nil {
		return nil, err
	}
	query := u.RawQuery
	u.RawQuery = ""
	if err := s.take(query, options); err != nil {
		return nil, err
	}
	s.text = u.String()
	return s, nil
}

// kinds are what an address may be forced to be, or its scheme.
var kinds = map[string]string{ // constant
	"http": kindHTTP, "https": kindHTTP, "file": kindFile, "git": kindGit, "s3": kindS3, "gcs": kindGCS,
}

// schemes are those of the addresses themselves.
var schemes = map[string][]string{ // constant
	kindHTTP: {"http", "https"}, kindFile: {"file", ""}, kindGit: {"http", "https", "ssh"}, kindS3: {"http", "https", "s3"},
	kindGCS: {"http", "https", "gs"},
}

// settle says what kind it is, if nothing did, and whether its scheme is one of that kind's.
func (s *source) settle(rest string) error {
	scheme := s.url.Scheme
	if s.kind == "" {
		s.kind = map[string]string{"http": "http", "https": "https", "file": "file", "ssh": "git", "s3": "s3", "gs": "gcs"}[scheme]
	}
	if s.kind == "" && scheme == "" {
		return drover.Errorf(drover.Invalid, "source %q: needs https://, http://, git::, s3::, gcs:: or file://", rest)
	}
	kind := kinds[s.kind]
	if kind == "" {
		return drover.Errorf(drover.NotImplemented, "getter %q is not there: want http, https, git, s3, gcs or file", cmp.Or(s.kind, scheme))
	}
	s.kind = kind
	if !slices.Contains(schemes[kind], scheme) {
		return drover.Errorf(drover.NotImplemented, "source %q: %s is fetched by %s, not by %q", rest, kind,
			strings.Join(schemes[kind], ", "), scheme)
	}
	if kind != kindFile && s.url.Hostname() == "" {
		return drover.Errorf(drover.Invalid, "source %q: names no server", rest)
	}
	return nil
}

// take sorts the options. Those of the block count more than those of the query, and join it where they are not ours.
func (s *source) take(query string, options map[string]string) error {
	values, err := url.ParseQuery(query)
	if err != nil {
		return drover.Errorf(drover.Invalid, "source: its query: %w", err)
	}
	ours := append(slices.Clone(common), known[s.kind]...)
	for _, k := range ours {
		if v := values.Get(k); v != "" {
			s.options[k] = v
			values.Del(k)
		}
	}
	for k, v := range options {
		if slices.Contains(ours, k) {
			s.options[k] = v
			continue
		}
		if s.kind != kindHTTP {
			return drover.Errorf(drover.Invalid, "option %q: %s has none of that name, only %s", k, s.kind, strings.Join(ours, ", "))
		}
		values.Add(k, v)
	}
	if s.kind == kindHTTP || s.kind == kindGit && s.url != nil {
		s.url.RawQuery = values.Encode()
		return nil
	}
	if len(values) > 0 {
		name := slices.Sorted(maps.Keys(values))[0]
		return drover.Errorf(drover.Invalid, "source: its query has %q, and %s has only %s", name, s.kind, strings.Join(ours, ", "))
	}
	return nil
}

// hosts of repositories whose addresses people write without a scheme.
var hosts = []string{"github.com/", "gitlab.com/", "bitbucket.org/"} // constant

// detect finds out what an address without a kind is. What has a scheme is taken by it.
func detect(raw string) (kind, rest string) {
	switch user, _, scp := strings.Cut(raw, "@"); {
	case strings.Contains(raw, "://"):
		return "", raw
	case filepath.IsAbs(raw):
		return kindFile, "file://" + raw
	case scp && !strings.ContainsAny(user, "/?:") && strings.Contains(raw[len(user):], ":"):
		return kindGit, raw
	}
	for _, h := range hosts {
		if strings.HasPrefix(raw, h) {
			return kindGit, "https://" + repositoryOf(raw)
		}
	}
	host, _, _ := strings.Cut(raw, "/")
	switch {
	case amazon(host):
		return kindS3, "https://" + raw
	case google(host):
		return kindGCS, "https://" + raw
	}
	return "", raw
}

// repositoryOf makes HOST/OWNER/NAME/PATH the repository's address with PATH as the folder in it.
func repositoryOf(raw string) string {
	at, query, has := strings.Cut(raw, "?")
	if has {
		query = "?" + query
	}
	parts := strings.SplitN(at, "/", 4)
	if len(parts) < 3 {
		return raw
	}
	name, cut := strings.CutSuffix(strings.Join(parts[:3], "/"), ".git")
	if cut || len(parts) < 4 || parts[3] == "" {
		return name + ".git" + strings.TrimPrefix(at, strings.Join(parts[:3], "/")) + query
	}
	return name + ".git//" + strings.TrimPrefix(parts[3], "/") + query
}

// cutSubdir takes the folder after // out of an address.
func cutSubdir(raw string) (address, subdir string) {
	at, query, has := strings.Cut(raw, "?")
	if has {
		query = "?" + query
	}
	start := 0
	if i := strings.Index(at, "://"); i >= 0 {
		start = i + 3
	}
	i := strings.Index(at[start:], "//")
	if i < 0 || strings.HasPrefix(at, "file://") {
		return raw, ""
	}
	return at[:start+i] + query, strings.Trim(path.Clean(at[start+i+2:]), "/")
}
