package ec2

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/sso"
	"github.com/aws/aws-sdk-go-v2/service/ssooidc"
	"github.com/aws/aws-sdk-go-v2/service/sts"
)

// Single operations as the clients that the SDK's packages of credentials want. A whole client, put into an interface,
// would keep all of its operations in the binary.
type (
	assumeRole                func(context.Context, *sts.AssumeRoleInput, ...func(*sts.Options)) (*sts.AssumeRoleOutput, error)
	assumeRoleWithWebIdentity func(
		context.Context, *sts.AssumeRoleWithWebIdentityInput, ...func(*sts.Options),
	) (*sts.AssumeRoleWithWebIdentityOutput, error)
	getRoleCredentials func(context.Context, *sso.GetRoleCredentialsInput, ...func(*sso.Options)) (*sso.GetRoleCredentialsOutput, error)
	createToken        func(context.Context, *ssooidc.CreateTokenInput, ...func(*ssooidc.Options)) (*ssooidc.CreateTokenOutput, error)
)

// AssumeRole implements stscreds.AssumeRoleAPIClient.
func (f assumeRole) AssumeRole(ctx context.Context, in *sts.AssumeRoleInput, o ...func(*sts.Options)) (*sts.AssumeRoleOutput, error) {
	return f(ctx, in, o...)
}

// AssumeRoleWithWebIdentity implements stscreds.AssumeRoleWithWebIdentityAPIClient.
func (f assumeRoleWithWebIdentity) AssumeRoleWithWebIdentity(
	ctx context.Context, in *sts.AssumeRoleWithWebIdentityInput, o ...func(*sts.Options),
) (*sts.AssumeRoleWithWebIdentityOutput, error) {
	return f(ctx, in, o...)
}

// GetRoleCredentials implements ssocreds.GetRoleCredentialsAPIClient.
func (f getRoleCredentials) GetRoleCredentials(
	ctx context.Context, in *sso.GetRoleCredentialsInput, o ...func(*sso.Options),
) (*sso.GetRoleCredentialsOutput, error) {
	return f(ctx, in, o...)
}

// CreateToken implements ssocreds.CreateTokenAPIClient.
func (f createToken) CreateToken(
	ctx context.Context, in *ssooidc.CreateTokenInput, o ...func(*ssooidc.Options),
) (*ssooidc.CreateTokenOutput, error) {
	return f(ctx, in, o...)
}
