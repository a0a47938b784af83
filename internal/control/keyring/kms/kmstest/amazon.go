package kmstest

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"
)

// Amazon's account, its key, and the alias of it.
const (
	AccessKey = "AKIDEXAMPLE"
	SecretKey = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
	Region    = "eu-central-1"
	Alias     = "alias/drover"
	KeyARN    = "arn:aws:kms:eu-central-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab"
)

// Amazon is AWS KMS.
func Amazon(t *testing.T) *Service {
	var s *Service
	s = serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if why := wrongSignature(r, body); why != "" {
			refuse(w, http.StatusBadRequest, map[string]string{"__type": "InvalidSignatureException", "message": why})
			return
		}
		var in struct {
			KeyID                     string `json:"KeyId"`
			Plaintext, CiphertextBlob []byte
		}
		if r.Method != http.MethodPost || r.URL.Path != "/" || r.Header.Get("Content-Type") != "application/x-amz-json-1.1" ||
			json.Unmarshal(body, &in) != nil {
			refuse(w, http.StatusBadRequest, map[string]string{"__type": "SerializationException"})
			return
		}
		if in.KeyID != Alias && in.KeyID != KeyARN {
			refuse(w, http.StatusBadRequest, map[string]string{"__type": "NotFoundException", "message": "Invalid keyId " + in.KeyID})
			return
		}
		switch r.Header.Get("X-Amz-Target") {
		case "TrentService.Encrypt":
			answer(w, map[string]any{"KeyId": KeyARN, "CiphertextBlob": s.seal(KeyARN, in.Plaintext)})
		case "TrentService.Decrypt":
			plain, ok := s.open(KeyARN, in.CiphertextBlob)
			if !ok {
				refuse(w, http.StatusBadRequest, map[string]string{"__type": "com.amazonaws.kms#InvalidCiphertextException"})
				return
			}
			answer(w, map[string]any{"KeyId": KeyARN, "Plaintext": plain})
		default:
			refuse(w, http.StatusBadRequest, map[string]string{"__type": "UnknownOperationException"})
		}
	})
	return s
}

var authorization = regexp.MustCompile(
	`^AWS4-HMAC-SHA256 Credential=([^/]+)/(\d{8})/([^/]+)/kms/aws4_request, SignedHeaders=([a-z0-9;-]+), Signature=([0-9a-f]{64})$`)

// wrongSignature says what is wrong with a request's signature, as AWS's documentation of version 4 computes it; "" if nothing is.
func wrongSignature(r *http.Request, body []byte) string {
	part := authorization.FindStringSubmatch(r.Header.Get("Authorization"))
	if part == nil {
		return "no signature of version 4: " + r.Header.Get("Authorization")
	}
	at := r.Header.Get("X-Amz-Date")
	when, err := time.Parse("20060102T150405Z", at)
	if err != nil || time.Since(when).Abs() > 15*time.Minute || !strings.HasPrefix(at, part[2]) {
		return "X-Amz-Date is " + at
	}
	if part[1] != AccessKey || part[3] != Region {
		return "the account or region is another one"
	}
	signed := strings.Split(part[4], ";")
	var headers bytes.Buffer
	covers := map[string]bool{}
	for _, name := range signed {
		covers[name] = true
		value := strings.Join(r.Header.Values(name), ",")
		switch name {
		case "host":
			value = r.Host
		case "content-length":
			value = r.Header.Get("Content-Length")
			if value == "" {
				value = itoa(r.ContentLength)
			}
		}
		headers.WriteString(name + ":" + strings.TrimSpace(value) + "\n")
	}
	for _, name := range []string{"host", "x-amz-date", "x-amz-target", "content-type"} {
		if !covers[name] {
			return name + " is not signed"
		}
	}
	sum := sha256.Sum256(body)
	canonical := strings.Join([]string{
		r.Method, r.URL.EscapedPath(), r.URL.RawQuery, headers.String(), part[4], hex.EncodeToString(sum[:]),
	}, "\n")
	hashed := sha256.Sum256([]byte(canonical))
	text := "AWS4-HMAC-SHA256\n" + at + "\n" + part[2] + "/" + Region + "/kms/aws4_request\n" + hex.EncodeToString(hashed[:])
	key := []byte("AWS4" + SecretKey)
	for _, step := range []string{part[2], Region, "kms", "aws4_request", text} {
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(step))
		key = mac.Sum(nil)
	}
	if hex.EncodeToString(key) != part[5] {
		return "the signature does not match"
	}
	return ""
}

func itoa(n int64) string {
	text, _ := json.Marshal(n)
	return string(text)
}
