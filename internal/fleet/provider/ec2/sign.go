package ec2

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"time"
)

const (
	algorithm = "AWS4-HMAC-SHA256"
	longTime  = "20060102T150405Z"
)

// sign signs a form post with Signature Version 4.
func sign(r *http.Request, body []byte, c Credentials, region string, now time.Time) {
	now = now.UTC()
	r.Header.Set("X-Amz-Date", now.Format(longTime))
	headers, signed := "content-type:"+r.Header.Get("Content-Type")+"\nhost:"+r.URL.Host+"\nx-amz-date:"+now.Format(longTime)+"\n", "content-type;host;x-amz-date"
	if c.SessionToken != "" {
		r.Header.Set("X-Amz-Security-Token", c.SessionToken)
		headers, signed = headers+"x-amz-security-token:"+c.SessionToken+"\n", signed+";x-amz-security-token"
	}
	path := r.URL.EscapedPath()
	if path == "" {
		path = "/"
	}
	request := r.Method + "\n" + path + "\n\n" + headers + "\n" + signed + "\n" + hash(body)
	scope := now.Format("20060102") + "/" + region + "/ec2/aws4_request"
	key := []byte("AWS4" + c.SecretKey)
	for _, part := range []string{now.Format("20060102"), region, "ec2", "aws4_request"} {
		key = mac(key, part)
	}
	signature := hex.EncodeToString(mac(key, algorithm+"\n"+now.Format(longTime)+"\n"+scope+"\n"+hash([]byte(request))))
	r.Header.Set("Authorization", algorithm+" Credential="+c.AccessKey+"/"+scope+", SignedHeaders="+signed+", Signature="+signature)
}

func mac(key []byte, text string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(text))
	return h.Sum(nil)
}

func hash(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
