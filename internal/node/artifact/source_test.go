package artifact

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
)

// Addresses as Nomad's documentation and its users write them.
func TestSources(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]source{
		"https://example.org/a.tgz": {kind: "http", text: "https://example.org/a.tgz"},
		"https://example.org/a.tgz?x=1&checksum=md5:0": {
			kind: "http", text: "https://example.org/a.tgz?x=1", options: map[string]string{"checksum": "md5:0"},
		},
		"https://example.org/a.tgz//sub/dir?x=1": {kind: "http", text: "https://example.org/a.tgz?x=1", subdir: "sub/dir"},
		"http::https://example.org/a?at=::1":     {kind: "http", text: "https://example.org/a?at=%3A%3A1"},
		"https://example.org/a?at=::1":           {kind: "http", text: "https://example.org/a?at=%3A%3A1"},
		"/srv/a":                                 {kind: "file", text: "file:///srv/a"},
		"file:///srv//a":                         {kind: "file", text: "file:///srv//a"},
		"git::https://example.org/x.git//a/b?ref=v1": {
			kind: "git", text: "https://example.org/x.git", subdir: "a/b", options: map[string]string{"ref": "v1"},
		},
		"git::ssh://git@example.org/x.git": {kind: "git", text: "ssh://git@example.org/x.git"},
		"ssh://git@example.org/x.git":      {kind: "git", text: "ssh://git@example.org/x.git"},
		"git::git@example.org:x/y.git?ref=a": {
			kind: "git", text: "git@example.org:x/y.git", options: map[string]string{"ref": "a"},
		},
		"git@github.com:x/y.git//sub": {kind: "git", text: "git@github.com:x/y.git", subdir: "sub"},
		"github.com/x/y":              {kind: "git", text: "https://github.com/x/y.git"},
		"github.com/x/y.git?ref=main": {
			kind: "git", text: "https://github.com/x/y.git", options: map[string]string{"ref": "main"},
		},
		"gitlab.com/x/y/sub/dir":                  {kind: "git", text: "https://gitlab.com/x/y.git", subdir: "sub/dir"},
		"s3::https://s3.amazonaws.com/bucket/a/b": {kind: "s3", text: "https://s3.amazonaws.com/bucket/a/b"},
		"bucket.s3-eu-west-1.amazonaws.com/a":     {kind: "s3", text: "https://bucket.s3-eu-west-1.amazonaws.com/a"},
		"s3://bucket/a?region=eu-west-1": {
			kind: "s3", text: "s3://bucket/a", options: map[string]string{"region": "eu-west-1"},
		},
		"gcs::https://www.googleapis.com/storage/v1/bucket/a": {kind: "gcs", text: "https://www.googleapis.com/storage/v1/bucket/a"},
		"www.googleapis.com/storage/v1/bucket/a?generation=12": {
			kind: "gcs", text: "https://www.googleapis.com/storage/v1/bucket/a", options: map[string]string{"generation": "12"},
		},
		"gs://bucket/a": {kind: "gcs", text: "gs://bucket/a"},
	} {
		got, err := parse(raw, nil)
		require.NoError(t, err, raw)
		if want.options == nil {
			want.options = map[string]string{}
		}
		got.url = nil
		require.Equal(t, want, *got, raw)
	}
}

func TestSourcesThatAreNone(t *testing.T) {
	t.Parallel()
	for raw, c := range map[string]struct {
		code drover.Code
		says string
	}{
		"example.org/a":                        {drover.Invalid, `source "example.org/a": needs https://, http://, git::`},
		"hg::https://example.org/a":            {drover.NotImplemented, `getter "hg" is not there: want http, https, git, s3, gcs or file`},
		"ftp://example.org/a":                  {drover.NotImplemented, `getter "ftp" is not there`},
		"git::git://example.org/a":             {drover.NotImplemented, `git is fetched by http, https, ssh, not by "git"`},
		"git::file:///srv/a":                   {drover.NotImplemented, `git is fetched by http, https, ssh, not by "file"`},
		"git::ext::sh -c x":                    {drover.Invalid, ""},
		"https:///a":                           {drover.Invalid, "names no server"},
		"s3::https://s3.amazonaws.com/b/a?x=1": {drover.Invalid, `its query has "x", and s3 has only`},
		"http://example.org/%zz":               {drover.Invalid, "source:"},
	} {
		src, err := parse(raw, nil)
		if raw == "git::ext::sh -c x" { // an address that git itself is not given: see package gitfetch
			require.NoError(t, err)
			require.Equal(t, "ext::sh -c x", src.text)
			continue
		}
		require.Equal(t, c.code, drover.CodeOf(err), raw)
		require.ErrorContains(t, err, c.says)
	}
	_, err := parse("git::https://example.org/x", map[string]string{"branch": "main"})
	require.EqualError(t, err, `option "branch": git has none of that name, only checksum, archive, filename, mode, ref, sshkey, depth`)
}

func TestHostsOfAmazon(t *testing.T) {
	t.Parallel()
	for host, want := range map[string][2]string{
		"s3.amazonaws.com":                           {"", ""},
		"s3-eu-west-1.amazonaws.com":                 {"", "eu-west-1"},
		"s3.eu-west-1.amazonaws.com":                 {"", "eu-west-1"},
		"s3.cn-north-1.amazonaws.com.cn":             {"", "cn-north-1"},
		"bucket.s3.amazonaws.com":                    {"bucket", ""},
		"a.b.s3.dualstack.eu-west-1.amazonaws.com":   {"a.b", "eu-west-1"},
		"bucket.s3-ap-southeast-2.amazonaws.com":     {"bucket", "ap-southeast-2"},
		"s3-bucket.s3.us-east-2.amazonaws.com":       {"s3-bucket", "us-east-2"},
		"b.vpce-1-2.s3.us-east-1.vpce.amazonaws.com": {"b.vpce-1-2", "us-east-1"},
		"ec2.amazonaws.com":                          {"", ""},
	} {
		name, region, storage := amazonHost(host)
		require.Equal(t, want, [2]string{name, region}, host)
		require.Equal(t, host != "ec2.amazonaws.com", storage, host)
	}
}
