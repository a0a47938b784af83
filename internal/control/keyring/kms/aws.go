package kms

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/credentials"

	"github.com/drover-project/drover"
)

// AWS says which key of AWS KMS wraps.
type AWS struct {
	Region   string // such as eu-central-1
	Key      string // id, ARN or alias of a symmetric key
	Endpoint string // URL of the service; "" = https://kms.REGION.amazonaws.com
	// Credentials sign calls. One that has a method Invalidate() is told when those that it gave were refused as expired.
	Credentials aws.CredentialsProvider
}

// StaticAWS returns credentials that are always the same; session is the token of those that expire, else "".
func StaticAWS(access, secret, session string) aws.CredentialsProvider {
	return credentials.NewStaticCredentialsProvider(access, secret, session)
}

// amazon speaks AWS KMS's JSON protocol.
type amazon struct {
	AWS
	caller
	signer *v4.Signer
}

// NewAWS returns a Wrapper; it asks nobody yet.
func NewAWS(cfg AWS, deps Deps) *Wrapper {
	domain := ".amazonaws.com"
	if strings.HasPrefix(cfg.Region, "cn-") {
		domain += ".cn"
	}
	cfg.Endpoint = cmp.Or(strings.TrimRight(cfg.Endpoint, "/"), "https://kms."+cfg.Region+domain)
	return &Wrapper{"awskms", deps.Name, &amazon{cfg, newCaller("awskms", deps.Clock), v4.NewSigner()}}
}

// wrap returns the ARN that the service tells: an alias may be another key's tomorrow.
func (a *amazon) wrap(ctx context.Context, key []byte) (string, []byte, error) {
	var out struct {
		CiphertextBlob []byte
		KeyID          string `json:"KeyId"`
	}
	err := a.call(ctx, "Encrypt", map[string]any{"KeyId": a.Key, "Plaintext": key}, &out)
	if err == nil && (len(out.CiphertextBlob) == 0 || out.KeyID == "") {
		err = drover.Errorf(drover.Unavailable, "keyring awskms: the service answered without a ciphertext or without the key's id")
	}
	return out.KeyID, out.CiphertextBlob, err
}

func (a *amazon) unwrap(ctx context.Context, keyID string, wrapped []byte) ([]byte, error) {
	// arn:aws:kms:REGION:ACCOUNT:key/ID; keys are of one region.
	if part := strings.SplitN(keyID, ":", 6); len(part) == 6 && part[3] != a.Region {
		return nil, drover.Errorf(drover.NotFound, "keyring awskms: it was wrapped with %s, and region is %q", keyID, a.Region)
	}
	var out struct{ Plaintext []byte }
	err := a.call(ctx, "Decrypt", map[string]any{"KeyId": keyID, "CiphertextBlob": wrapped}, &out)
	return out.Plaintext, err
}

// call makes a call, and once more with new credentials if the old ones have expired.
func (a *amazon) call(ctx context.Context, action string, in, out any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return drover.Errorf(drover.Internal, "keyring awskms: %w", err)
	}
	sum := sha256.Sum256(body)
	r := request{
		method: http.MethodPost, url: a.Endpoint + "/", body: body,
		header: http.Header{"Content-Type": {"application/x-amz-json-1.1"}, "X-Amz-Target": {"TrentService." + action}},
		sign: func(ctx context.Context, h *http.Request) error {
			key, err := a.Credentials.Retrieve(ctx)
			if err != nil {
				return err
			}
			return a.signer.SignHTTP(ctx, key, h, hex.EncodeToString(sum[:]), "kms", a.Region, a.clock.Now())
		},
	}
	f, err := a.do(ctx, r, out, amazonRefusal)
	if f == nil {
		return err
	}
	switch f.code {
	case "ExpiredTokenException":
		if stale, ok := a.Credentials.(interface{ Invalidate() }); ok {
			stale.Invalidate()
			_, err = a.do(ctx, r, out, amazonRefusal)
		}
	case "NotFoundException", "IncorrectKeyException":
		return drover.Errorf(drover.NotFound, "%w", err)
	case "InvalidCiphertextException":
		return drover.Errorf(drover.Invalid, "%w", err)
	}
	return err
}

func amazonRefusal(a answer) (f fault) {
	var doc struct {
		Type    string `json:"__type"`
		Message string `json:"message"` // or Message: names of fields are matched in any case
	}
	if json.Unmarshal(a.body, &doc) == nil {
		f.code, f.text = doc.Type[strings.LastIndex(doc.Type, "#")+1:], doc.Message
	}
	return f
}
