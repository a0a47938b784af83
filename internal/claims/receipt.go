package claims

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/go-jose/go-jose/v4"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
)

// ReceiptType is the type of signed receipts: no receipt can be taken for an identity, and no identity for a receipt.
const ReceiptType = "drover-receipt+jwt"

// maxReceipt is the longest signed receipt that is read, in bytes.
const maxReceipt = 64 << 10

// Receipt completes the statement, which is then to be signed.
func Receipt(s Stamp, st execution.Statement) execution.Statement {
	st.Issuer, st.Subject, st.IssuedAt = s.Issuer, strings.Join([]string{"execution", s.Region, st.Execution}, ":"), s.Now.Unix()
	return st
}

// VerifyReceipt reads a receipt that one of the keys signed, and returns the key's id. Errors: Forbidden, with what is wrong.
func VerifyReceipt(token string, keys []jose.JSONWebKey) (*execution.Statement, string, error) {
	if len(token) > maxReceipt {
		return nil, "", unsigned("it is longer than %d bytes", maxReceipt)
	}
	parsed, err := jose.ParseSignedCompact(token, []jose.SignatureAlgorithm{jose.EdDSA})
	if err != nil {
		return nil, "", unsigned("it is no JSON web signature in compact form with EdDSA")
	}
	header := parsed.Signatures[0].Protected
	if kind := header.ExtraHeaders[jose.HeaderType]; kind != ReceiptType {
		return nil, "", unsigned("its type is %q, not %q", fmt.Sprint(kind), ReceiptType)
	}
	for i := range keys {
		if keys[i].KeyID != header.KeyID || keys[i].Algorithm != header.Algorithm {
			continue
		}
		payload, err := parsed.Verify(keys[i].Key)
		if err != nil {
			return nil, "", unsigned("the signature is not that of key %s: it was changed", header.KeyID)
		}
		var st execution.Statement
		if json.Unmarshal(payload, &st) != nil {
			return nil, "", unsigned("what was signed is no statement of an execution")
		}
		return &st, header.KeyID, nil
	}
	return nil, "", unsigned("key %q is none of the %d that are published: it was removed, or another cluster signed", header.KeyID, len(keys))
}

func unsigned(format string, args ...any) error {
	return drover.Errorf(drover.Forbidden, "the receipt is not verified: "+format, args...)
}
