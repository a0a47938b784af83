package ec2test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// authenticate checks a request's Signature Version 4, as the service does: from what it got, not from what it would
// have sent.
func (c *Cloud) authenticate(r *http.Request, body []byte) *failure {
	denied := func(code, message string) *failure { return &failure{http.StatusForbidden, code, message, 0} }
	fields := map[string]string{}
	rest, ok := strings.CutPrefix(r.Header.Get("Authorization"), "AWS4-HMAC-SHA256 ")
	for _, part := range strings.Split(rest, ",") {
		k, v, _ := strings.Cut(strings.TrimSpace(part), "=")
		fields[k] = v
	}
	scope := strings.SplitN(fields["Credential"], "/", 2)
	if !ok || len(scope) != 2 {
		return denied("MissingAuthenticationToken", "Request is missing Authentication Token")
	}
	stamp := r.Header.Get("X-Amz-Date")
	at, err := time.Parse("20060102T150405Z", stamp)
	switch {
	case scope[0] != AccessKey:
		return &failure{http.StatusUnauthorized, "AuthFailure", "AWS was not able to validate the provided access credentials", 0}
	case err != nil || time.Since(at).Abs() > 5*time.Minute:
		return denied("RequestExpired", "Request has expired.")
	case c.Sessions[r.Header.Get("X-Amz-Security-Token")]:
		return denied("ExpiredToken", "The security token included in the request is expired")
	case scope[1] != stamp[:8]+"/"+Region+"/ec2/aws4_request":
		return denied("SignatureDoesNotMatch", "Credential should be scoped to a valid region.")
	}
	var headers strings.Builder
	for _, name := range strings.Split(fields["SignedHeaders"], ";") {
		value := strings.Join(r.Header.Values(name), ",")
		switch name {
		case "host":
			value = r.Host
		case "content-length":
			value = fmt.Sprint(r.ContentLength)
		}
		fmt.Fprintf(&headers, "%s:%s\n", name, strings.Join(strings.Fields(value), " "))
	}
	digest := func(b []byte) string { s := sha256.Sum256(b); return hex.EncodeToString(s[:]) }
	canonical := strings.Join([]string{
		r.Method, r.URL.EscapedPath(), r.URL.RawQuery, headers.String(), fields["SignedHeaders"],
		digest(body),
	}, "\n")
	key := []byte("AWS4" + SecretKey)
	sum := func(data string) []byte {
		h := hmac.New(sha256.New, key)
		h.Write([]byte(data))
		return h.Sum(nil)
	}
	for _, part := range strings.Split(scope[1], "/") {
		key = sum(part)
	}
	if hex.EncodeToString(sum("AWS4-HMAC-SHA256\n"+stamp+"\n"+scope[1]+"\n"+digest([]byte(canonical)))) != fields["Signature"] {
		return denied("SignatureDoesNotMatch", "The request signature we calculated does not match the signature you provided.")
	}
	return nil
}

// Metadata is the base URL of the metadata service of a machine.
func (c *Cloud) Metadata(machine string) string { return c.URL + "/machine/" + machine }

// metadata is the service (IMDSv2) that gives a machine the credentials of its role, and tells it which of its
// reservation it is.
func (c *Cloud) metadata(w http.ResponseWriter, r *http.Request) {
	machine := ""
	if rest, ok := strings.CutPrefix(r.URL.Path, "/machine/"); ok {
		machine, rest, _ = strings.Cut(rest, "/")
		r.URL.Path = "/" + rest
	}
	const path = "/latest/meta-data/iam/security-credentials/"
	switch {
	case r.Method == http.MethodPut && r.URL.Path == "/latest/api/token" && r.Header.Get("X-aws-ec2-metadata-token-ttl-seconds") != "":
		w.Header().Set("X-aws-ec2-metadata-token-ttl-seconds", "300")
		fmt.Fprint(w, "session")
	case r.Header.Get("X-aws-ec2-metadata-token") != "session":
		w.WriteHeader(http.StatusUnauthorized)
	case r.URL.Path == "/latest/meta-data/ami-launch-index":
		c.With(func(c *Cloud) {
			if i := c.find(machine); i != nil {
				fmt.Fprint(w, i.index())
				return
			}
			w.WriteHeader(http.StatusNotFound)
		})
	case r.URL.Path == path:
		fmt.Fprint(w, "fleet-role")
	case r.URL.Path == path+"fleet-role":
		c.With(func(c *Cloud) {
			c.AskedRole++
			fmt.Fprintf(w, `{"Code":"Success","AccessKeyId":%q,"SecretAccessKey":%q,"Token":"token-%d","Expiration":%q}`,
				AccessKey, SecretKey, c.AskedRole, time.Now().Add(6*time.Hour).UTC().Format(time.RFC3339))
		})
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}
