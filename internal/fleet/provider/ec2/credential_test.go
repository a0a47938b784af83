package ec2_test

import (
	"crypto/sha1" // as the SDK names files
	"encoding/hex"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/internal/fleet/provider"
	"github.com/drover-project/drover/internal/fleet/provider/ec2"
	"github.com/drover-project/drover/internal/fleet/provider/ec2/ec2test"
)

// alone takes all settings of Amazon's tools out of the test's environment and puts env in. The tests that need it do not
// run beside others, as the SDK reads the process's environment.
func alone(t *testing.T, env map[string]string) {
	t.Helper()
	for _, name := range []string{
		"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE", "AWS_REGION", "AWS_ROLE_ARN",
		"AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_CA_BUNDLE", "AWS_CONTAINER_CREDENTIALS_FULL_URI", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
	} {
		t.Setenv(name, "")
	}
	nowhere := t.TempDir()
	t.Setenv("HOME", nowhere)
	t.Setenv("AWS_CONFIG_FILE", filepath.Join(nowhere, "config"))
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", filepath.Join(nowhere, "credentials"))
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	for k, v := range env {
		t.Setenv(k, v)
	}
}

func wrote(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o700)) // one of them is a program
	return path
}

func retrieve(t *testing.T, cfg ec2.ChainConfig) string {
	t.Helper()
	cfg.HTTP = client(t)
	got, err := ec2.NewChain(cfg).Retrieve(t.Context())
	require.NoError(t, err)
	return got.AccessKeyID + " " + got.SecretAccessKey + " " + got.SessionToken
}

const profiles = "# mine\n[other]\naws_access_key_id = no\n\n[work]\naws_access_key_id=A\naws_secret_access_key = S=\n" +
	"aws_session_token = T\n" +
	"[half]\naws_access_key_id = A\n"

// It does not run in parallel: see alone.
func TestCredentialsOfTheEnvironmentAndOfFiles(t *testing.T) {
	file := wrote(t, "credentials", profiles)
	t.Run("environment", func(t *testing.T) {
		alone(t, map[string]string{
			"AWS_ACCESS_KEY_ID": "E", "AWS_SECRET_ACCESS_KEY": "S", "AWS_SHARED_CREDENTIALS_FILE": file,
			"AWS_PROFILE": "work",
		})
		require.Equal(t, "E S ", retrieve(t, ec2.ChainConfig{}))
	})
	t.Run("file", func(t *testing.T) {
		alone(t, map[string]string{"AWS_SHARED_CREDENTIALS_FILE": file, "AWS_PROFILE": "work"})
		require.Equal(t, "A S= T", retrieve(t, ec2.ChainConfig{}))
	})
	t.Run("file of the configuration", func(t *testing.T) {
		alone(t, map[string]string{"AWS_PROFILE": "work"})
		require.Equal(t, "A S= T", retrieve(t, ec2.ChainConfig{File: file}))
	})
	t.Run("half", func(t *testing.T) {
		alone(t, map[string]string{"AWS_PROFILE": "half"})
		_, err := ec2.NewChain(ec2.ChainConfig{File: file, HTTP: client(t)}).Retrieve(t.Context())
		require.Equal(t, provider.Auth, provider.KindOf(err))
		require.ErrorContains(t, err, "partial credentials")
	})
	t.Run("none", func(t *testing.T) {
		alone(t, nil)
		_, err := ec2.NewChain(ec2.ChainConfig{HTTP: client(t)}).Retrieve(t.Context())
		require.Equal(t, provider.Auth, provider.KindOf(err))
		for _, where := range []string{"AWS_ACCESS_KEY_ID", "files", "AWS_EC2_METADATA_DISABLED"} {
			require.ErrorContains(t, err, where)
		}
	})
	t.Run("a file that changed", func(t *testing.T) {
		alone(t, nil)
		path := wrote(t, "credentials", "[default]\naws_access_key_id = A\naws_secret_access_key = S\n")
		c := ec2.NewChain(ec2.ChainConfig{File: path, HTTP: client(t)})
		_, err := c.Retrieve(t.Context())
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(path, []byte("[default]\naws_access_key_id = B\naws_secret_access_key = S\n"), 0o600))
		got, err := c.Retrieve(t.Context())
		require.NoError(t, err)
		require.Equal(t, "A", got.AccessKeyID, "it is kept")
		c.Invalidate()
		got, err = c.Retrieve(t.Context())
		require.NoError(t, err)
		require.Equal(t, "B", got.AccessKeyID)
	})
}

// tokens answers as Amazon's token service and its SSO portal do.
func tokens(t *testing.T) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		expires := time.Now().Add(time.Hour)
		if r.URL.Path == "/federation/credentials" {
			fmt.Fprintf(w, `{"roleCredentials":{"accessKeyId":"SSO","secretAccessKey":"S","sessionToken":%q,"expiration":%d}}`,
				r.Header.Get("x-amz-sso_bearer_token"), expires.UnixMilli())
			return
		}
		action := r.FormValue("Action")
		fmt.Fprintf(w, `<%sResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><%sResult><Credentials><AccessKeyId>%s</AccessKeyId>`+
			`<SecretAccessKey>S</SecretAccessKey><SessionToken>%s</SessionToken><Expiration>%s</Expiration></Credentials></%sResult></%sResponse>`,
			action, action, action, r.FormValue("WebIdentityToken"), expires.UTC().Format(time.RFC3339), action, action)
	}))
	t.Cleanup(s.Close)
	return s
}

// It does not run in parallel: see alone.
func TestCredentialsThatOthersGive(t *testing.T) {
	service := tokens(t)
	t.Run("process", func(t *testing.T) {
		program := wrote(t, "keys", "#!/bin/sh\necho '{\"Version\":1,\"AccessKeyId\":\"P\",\"SecretAccessKey\":\"S\",\"SessionToken\":\"T\"}'\n")
		alone(t, map[string]string{"AWS_CONFIG_FILE": wrote(t, "config", "[default]\ncredential_process = "+program+"\n")})
		require.Equal(t, "P S T", retrieve(t, ec2.ChainConfig{}))
	})
	t.Run("assumed role", func(t *testing.T) {
		alone(t, map[string]string{
			"AWS_ENDPOINT_URL": service.URL, "AWS_PROFILE": "fleet", "AWS_SHARED_CREDENTIALS_FILE": wrote(t, "credentials", profiles),
			"AWS_CONFIG_FILE": wrote(t, "config", "[profile fleet]\nrole_arn = arn:aws:iam::1:role/fleet\nsource_profile = work\n"),
		})
		require.Equal(t, "AssumeRole S ", retrieve(t, ec2.ChainConfig{Region: ec2test.Region}))
	})
	t.Run("web identity", func(t *testing.T) {
		alone(t, map[string]string{
			"AWS_ENDPOINT_URL": service.URL, "AWS_ROLE_ARN": "arn:aws:iam::1:role/fleet", "AWS_WEB_IDENTITY_TOKEN_FILE": wrote(t, "token", "T"),
		})
		require.Equal(t, "AssumeRoleWithWebIdentity S T", retrieve(t, ec2.ChainConfig{Region: ec2test.Region}))
	})
	t.Run("SSO", func(t *testing.T) {
		home := t.TempDir()
		cache := filepath.Join(home, ".aws", "sso", "cache")
		require.NoError(t, os.MkdirAll(cache, 0o700))
		alone(t, map[string]string{
			"AWS_ENDPOINT_URL": service.URL, "HOME": home,
			"AWS_CONFIG_FILE": wrote(t, "config", "[default]\nsso_start_url = https://start\nsso_region = eu-test-1\n"+
				"sso_account_id = 1\nsso_role_name = fleet\n"),
		})
		name := sha1.Sum([]byte("https://start")) // as the SDK names it
		path := filepath.Join(cache, hex.EncodeToString(name[:])+".json")
		text := fmt.Sprintf(`{"accessToken":"T","expiresAt":%q}`, time.Now().Add(time.Hour).UTC().Format(time.RFC3339))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		require.Equal(t, "SSO S T", retrieve(t, ec2.ChainConfig{Region: ec2test.Region}))
	})
	t.Run("role of the machine", func(t *testing.T) {
		c := ec2test.New(t)
		alone(t, map[string]string{"AWS_EC2_METADATA_DISABLED": "", "AWS_EC2_METADATA_SERVICE_ENDPOINT": c.URL})
		p := account(t, c, "me", func(cfg *ec2.Config) { cfg.Credentials = ec2.NewChain(ec2.ChainConfig{HTTP: client(t)}) })
		for range 3 {
			_, _, err := p.List(t.Context(), "")
			require.NoError(t, err)
		}
		require.Equal(t, 1, c.AskedRole, "they are kept while they are good")
		c.With(func(c *ec2test.Cloud) { c.Sessions["token-1"] = true })
		_, _, err := p.List(t.Context(), "")
		require.NoError(t, err, "those that were refused are fetched anew")
		require.Equal(t, 2, c.AskedRole)
	})
}

func TestCredentialsThatAreRefused(t *testing.T) {
	t.Parallel()
	c := ec2test.New(t)
	for name, key := range map[string]ec2.Credentials{
		"AuthFailure": ec2.Static("X", ec2test.SecretKey), "SignatureDoesNotMatch": ec2.Static(ec2test.AccessKey, "x"),
	} {
		_, _, err := account(t, c, "me", func(cfg *ec2.Config) { cfg.Credentials = key }).List(t.Context(), "")
		require.Equal(t, provider.Auth, provider.KindOf(err))
		require.ErrorContains(t, err, name)
	}
}
