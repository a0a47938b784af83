package ec2

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsconfig "github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/credentials/ec2rolecreds"
	"github.com/aws/aws-sdk-go-v2/credentials/endpointcreds"
	"github.com/aws/aws-sdk-go-v2/credentials/processcreds"
	"github.com/aws/aws-sdk-go-v2/credentials/ssocreds"
	"github.com/aws/aws-sdk-go-v2/credentials/stscreds"
	"github.com/aws/aws-sdk-go-v2/feature/ec2/imds"
	"github.com/aws/aws-sdk-go-v2/service/sso"
	"github.com/aws/aws-sdk-go-v2/service/ssooidc"
	"github.com/aws/aws-sdk-go-v2/service/sts"
)

// finder chooses a source of credentials in the order of the SDK's config.LoadDefaultConfig. That function itself would
// make the binary 9 % larger, as it makes whole clients of four services; a finder calls one operation of each.
type finder struct {
	env  awsconfig.EnvConfig
	base aws.Config // of the services that are asked
}

func find(ctx context.Context, cfg ChainConfig) (Credentials, error) {
	env, err := awsconfig.NewEnvConfig()
	if err != nil {
		return nil, err
	}
	shared, err := profile(ctx, &env, cfg.File)
	if err != nil {
		return nil, err
	}
	f := &finder{env: env, base: aws.Config{
		Region: cmp.Or(cfg.Region, env.Region, shared.Region), ConfigSources: []any{env, *shared},
	}}
	if cfg.HTTP != nil {
		f.base.HTTPClient = cfg.HTTP
	}
	if env.BaseEndpoint != "" {
		f.base.BaseEndpoint = &env.BaseEndpoint
	}
	switch {
	case env.Credentials.HasKeys():
		return credentials.StaticCredentialsProvider{Value: env.Credentials}, nil
	case env.WebIdentityTokenFilePath != "":
		return f.webIdentity(env.WebIdentityTokenFilePath, env.RoleARN, env.RoleSessionName)
	}
	return f.ofProfile(shared)
}

// profile reads the environment's profile. A profile or file that does not exist is an empty one.
func profile(ctx context.Context, env *awsconfig.EnvConfig, file string) (*awsconfig.SharedConfig, error) {
	name := cmp.Or(env.SharedConfigProfile, awsconfig.DefaultSharedConfigProfile)
	shared, err := awsconfig.LoadSharedConfigProfile(ctx, name, func(o *awsconfig.LoadSharedConfigOptions) {
		if file = cmp.Or(file, env.SharedCredentialsFile); file != "" {
			o.CredentialsFiles = []string{file}
		}
		if env.SharedConfigFile != "" {
			o.ConfigFiles = []string{env.SharedConfigFile}
		}
	})
	if _, missing := errors.AsType[awsconfig.SharedConfigProfileNotExistError](err); missing {
		return &awsconfig.SharedConfig{}, nil
	}
	return &shared, err
}

// ofProfile returns the credentials that a profile names, else those of the container or the machine, and with a role those
// of the role.
func (f *finder) ofProfile(p *awsconfig.SharedConfig) (found Credentials, err error) {
	switch {
	case p.Source != nil:
		found, err = f.ofProfile(p.Source)
	case p.Credentials.HasKeys():
		found = credentials.StaticCredentialsProvider{Value: p.Credentials}
	case p.CredentialSource != "":
		found, err = f.named(p.CredentialSource)
	case p.WebIdentityTokenFile != "":
		return f.webIdentity(p.WebIdentityTokenFile, p.RoleARN, p.RoleSessionName)
	case p.SSOSession != nil || p.SSOStartURL != "":
		found, err = f.signedOn(p)
	case p.CredentialProcess != "":
		found = processcreds.NewProvider(p.CredentialProcess)
	case f.env.ContainerCredentialsRelativePath != "" || f.env.ContainerCredentialsEndpoint != "":
		found = f.container()
	default:
		found = f.machine()
	}
	if err != nil || p.RoleARN == "" {
		return found, err
	}
	return f.assumed(p, found)
}

// named returns the source that a profile with a role names by credential_source.
func (f *finder) named(source string) (Credentials, error) {
	switch source {
	case "Ec2InstanceMetadata":
		return f.machine(), nil
	case "Environment":
		return credentials.StaticCredentialsProvider{Value: f.env.Credentials}, nil
	case "EcsContainer":
		return f.container(), nil
	}
	return nil, fmt.Errorf("credential_source %q: must be Ec2InstanceMetadata, Environment or EcsContainer", source)
}

func (f *finder) machine() Credentials {
	return ec2rolecreds.New(func(o *ec2rolecreds.Options) { o.Client = imds.NewFromConfig(f.base) })
}

// container asks the service that ECS or EKS put beside the container.
func (f *finder) container() Credentials {
	endpoint := f.env.ContainerCredentialsEndpoint
	if path := f.env.ContainerCredentialsRelativePath; path != "" {
		endpoint = "http://169.254.170.2" + path
	}
	return endpointcreds.New(endpoint, func(o *endpointcreds.Options) {
		o.AuthorizationToken = f.env.ContainerAuthorizationToken
		if file := os.Getenv("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"); file != "" {
			o.AuthorizationTokenProvider = endpointcreds.TokenProviderFunc(func() (string, error) {
				token, err := stscreds.IdentityTokenFile(file).GetIdentityToken()
				return string(token), err
			})
		}
	})
}

// signedOn exchanges the token that `aws sso login` left for credentials.
func (f *finder) signedOn(p *awsconfig.SharedConfig) (Credentials, error) {
	base := f.base.Copy()
	base.Region = p.SSORegion
	var options []func(*ssocreds.Options)
	if s := p.SSOSession; s != nil {
		base.Region = s.SSORegion
		path, err := ssocreds.StandardCachedTokenFilepath(s.Name)
		if err != nil {
			return nil, err
		}
		tokens := ssocreds.NewSSOTokenProvider(createToken(ssooidc.NewFromConfig(base).CreateToken), path)
		options = append(options, func(o *ssocreds.Options) { o.SSOTokenProvider, o.CachedTokenFilepath = tokens, path })
	}
	client := getRoleCredentials(sso.NewFromConfig(base).GetRoleCredentials)
	return ssocreds.New(client, p.SSOAccountID, p.SSORoleName, p.SSOStartURL, options...), nil
}

func (f *finder) webIdentity(tokenFile, role, session string) (Credentials, error) {
	if role == "" {
		return nil, errors.New("a web identity's token needs the ARN of a role")
	}
	client := assumeRoleWithWebIdentity(sts.NewFromConfig(f.base).AssumeRoleWithWebIdentity)
	return stscreds.NewWebIdentityRoleProvider(client, role, stscreds.IdentityTokenFile(tokenFile), func(o *stscreds.WebIdentityRoleOptions) {
		o.RoleSessionName = session
	}), nil
}

// assumed takes a profile's role with the credentials of another.
func (f *finder) assumed(p *awsconfig.SharedConfig, with Credentials) (Credentials, error) {
	if p.MFASerial != "" {
		return nil, fmt.Errorf("profile %q needs the code of a device (mfa_serial), and nobody is here to type it", p.Profile)
	}
	base := f.base.Copy()
	base.Credentials = aws.NewCredentialsCache(with)
	client := assumeRole(sts.NewFromConfig(base).AssumeRole)
	return stscreds.NewAssumeRoleProvider(client, p.RoleARN, func(o *stscreds.AssumeRoleOptions) {
		o.RoleSessionName = p.RoleSessionName
		if p.ExternalID != "" {
			o.ExternalID = &p.ExternalID
		}
		if p.RoleDurationSeconds != nil {
			o.Duration = *p.RoleDurationSeconds
		}
	}), nil
}
