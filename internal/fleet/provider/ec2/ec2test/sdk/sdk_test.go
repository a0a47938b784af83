package sdk

import (
	"encoding/base64"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/smithy-go"
	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/internal/fleet/provider/ec2/ec2test"
)

// sdk is Amazon's own client of the cloud.
func sdk(t *testing.T, c *ec2test.Cloud, secret string) *ec2.Client {
	tr := &http.Transport{}
	t.Cleanup(tr.CloseIdleConnections)
	return ec2.New(ec2.Options{
		Region: ec2test.Region, BaseEndpoint: &c.URL, Retryer: aws.NopRetryer{}, HTTPClient: &http.Client{Transport: tr},
		Credentials: credentials.NewStaticCredentialsProvider(ec2test.AccessKey, secret, ""),
	})
}

func order(token string) *ec2.RunInstancesInput {
	return &ec2.RunInstancesInput{
		ImageId: aws.String("ami-1"), InstanceType: "m5.large", MinCount: aws.Int32(1), MaxCount: aws.Int32(1), ClientToken: &token,
		UserData:  aws.String(base64.StdEncoding.EncodeToString([]byte("#!/bin/sh\n"))),
		Placement: &types.Placement{AvailabilityZone: aws.String("eu-test-1a")},
		InstanceMarketOptions: &types.InstanceMarketOptionsRequest{
			MarketType: types.MarketTypeSpot, SpotOptions: &types.SpotMarketOptions{SpotInstanceType: types.SpotInstanceTypeOneTime},
		},
		TagSpecifications: []types.TagSpecification{{
			ResourceType: types.ResourceTypeInstance,
			Tags:         []types.Tag{{Key: aws.String("team"), Value: aws.String("a & b <c> ü")}},
		}},
	}
}

func code(t *testing.T, err error) string {
	t.Helper()
	var api smithy.APIError
	require.ErrorAs(t, err, &api)
	return api.ErrorCode()
}

// TestTheSDKAgrees makes Amazon's SDK the judge of the emulator: it signs, asks and reads as for the real one.
func TestTheSDKAgrees(t *testing.T) {
	t.Parallel()
	c := ec2test.New(t)
	c.With(func(c *ec2test.Cloud) { c.Delay = 10 * time.Second })
	client, ctx := sdk(t, c, ec2test.SecretKey), t.Context()

	run, err := client.RunInstances(ctx, order("a"))
	require.NoError(t, err)
	again, err := client.RunInstances(ctx, order("a"))
	require.NoError(t, err)
	id := *run.Instances[0].InstanceId
	require.Equal(t, id, *again.Instances[0].InstanceId)
	require.Equal(t, types.InstanceStateNamePending, run.Instances[0].State.Name)
	require.Equal(t, types.InstanceLifecycleTypeSpot, run.Instances[0].InstanceLifecycle)
	require.Equal(t, "a & b <c> ü", *run.Instances[0].Tags[0].Value)
	other := order("a")
	other.ImageId = aws.String("ami-2")
	_, err = client.RunInstances(ctx, other)
	require.Equal(t, "IdempotentParameterMismatch", code(t, err))

	byTag := &ec2.DescribeInstancesInput{
		MaxResults: aws.Int32(5),
		Filters:    []types.Filter{{Name: aws.String("tag:team"), Values: []string{"a & b <c> ü"}}},
	}
	empty, err := client.DescribeInstances(ctx, byTag)
	require.NoError(t, err)
	require.Empty(t, empty.Reservations, "lists are late")
	for n := range 11 {
		_, err := client.RunInstances(ctx, order(string(rune('b'+n))))
		require.NoError(t, err)
	}
	c.Pass(30 * time.Second)
	seen := 0
	for pages := ec2.NewDescribeInstancesPaginator(client, byTag); pages.HasMorePages(); {
		page, err := pages.NextPage(ctx)
		require.NoError(t, err)
		require.LessOrEqual(t, len(page.Reservations), 5)
		for _, r := range page.Reservations {
			seen += len(r.Instances)
			require.Equal(t, types.InstanceStateNameRunning, r.Instances[0].State.Name)
			require.NotEmpty(t, *r.Instances[0].PrivateIpAddress)
			require.Equal(t, "eu-test-1a", *r.Instances[0].Placement.AvailabilityZone)
		}
	}
	require.Equal(t, 12, seen)

	_, err = client.CreateTags(ctx, &ec2.CreateTagsInput{
		Resources: []string{id},
		Tags:      []types.Tag{{Key: aws.String("k"), Value: aws.String("v")}},
	})
	require.NoError(t, err)
	console, err := client.GetConsoleOutput(ctx, &ec2.GetConsoleOutputInput{InstanceId: &id})
	require.NoError(t, err)
	require.NotEmpty(t, *console.Output)
	end, err := client.TerminateInstances(ctx, &ec2.TerminateInstancesInput{InstanceIds: []string{id}})
	require.NoError(t, err)
	require.Equal(t, types.InstanceStateNameShuttingDown, end.TerminatingInstances[0].CurrentState.Name)
	c.Pass(30 * time.Second)
	one, err := client.DescribeInstances(ctx, &ec2.DescribeInstancesInput{InstanceIds: []string{id}})
	require.NoError(t, err)
	require.Equal(t, types.InstanceStateNameTerminated, one.Reservations[0].Instances[0].State.Name)
}

// Several machines of one call: as many as there are, each with its launch index, again the same ones.
func TestTheSDKReadsBatches(t *testing.T) {
	t.Parallel()
	c := ec2test.New(t)
	c.With(func(c *ec2test.Cloud) { c.Left["m5.large"] = 3 })
	client, ctx := sdk(t, c, ec2test.SecretKey), t.Context()
	several := order("a")
	several.MaxCount = aws.Int32(5)
	for range 2 {
		run, err := client.RunInstances(ctx, several)
		require.NoError(t, err)
		require.Len(t, run.Instances, 3)
		for n, i := range run.Instances {
			require.EqualValues(t, n, *i.AmiLaunchIndex)
		}
	}
	c.Pass(time.Minute)
	list, err := client.DescribeInstances(ctx, &ec2.DescribeInstancesInput{})
	require.NoError(t, err)
	seen := map[int32]bool{}
	for _, r := range list.Reservations {
		for _, i := range r.Instances {
			seen[*i.AmiLaunchIndex] = true
		}
	}
	require.Equal(t, map[int32]bool{0: true, 1: true, 2: true}, seen)
	_, err = client.RunInstances(ctx, order("b"))
	require.Equal(t, "InsufficientInstanceCapacity", code(t, err))
}

func TestTheSDKReadsPrices(t *testing.T) {
	t.Parallel()
	c := ec2test.New(t)
	c.With(func(c *ec2test.Cloud) {
		c.PageMost = 1
		c.SpotPrices = []ec2test.SpotPrice{
			{Type: "m5.large", Zone: "eu-test-1a", Price: 0.05},
			{Type: "m5.large", Zone: "eu-test-1b", Price: 0.06},
			{Type: "c5.large", Zone: "eu-test-1a", Price: 1},
		}
	})
	at := time.Now()
	seen := map[string]string{}
	for pages := ec2.NewDescribeSpotPriceHistoryPaginator(sdk(t, c, ec2test.SecretKey), &ec2.DescribeSpotPriceHistoryInput{
		StartTime: &at, EndTime: &at, InstanceTypes: []types.InstanceType{"m5.large"}, ProductDescriptions: []string{"Linux/UNIX"},
		Filters: []types.Filter{{Name: aws.String("availability-zone"), Values: []string{"eu-test-1a", "eu-test-1b"}}},
	}); pages.HasMorePages(); {
		page, err := pages.NextPage(t.Context())
		require.NoError(t, err)
		for _, p := range page.SpotPriceHistory {
			require.Equal(t, types.InstanceTypeM5Large, p.InstanceType)
			require.NotNil(t, p.Timestamp)
			seen[*p.AvailabilityZone] = *p.SpotPrice
		}
	}
	require.Equal(t, map[string]string{"eu-test-1a": "0.050000", "eu-test-1b": "0.060000"}, seen)
}

func TestTheSDKReadsItsErrors(t *testing.T) {
	t.Parallel()
	c := ec2test.New(t)
	c.With(func(c *ec2test.Cloud) { c.SoldOut["c5.large/eu-test-1a/spot"], c.Quota["m5.large"] = true, -1 })
	client, ctx := sdk(t, c, ec2test.SecretKey), t.Context()
	_, err := client.RunInstances(ctx, order("a"))
	require.Equal(t, "VcpuLimitExceeded", code(t, err))
	sold := order("b")
	sold.InstanceType = "c5.large"
	_, err = client.RunInstances(ctx, sold)
	require.Equal(t, "InsufficientInstanceCapacity", code(t, err))
	_, err = client.TerminateInstances(ctx, &ec2.TerminateInstancesInput{InstanceIds: []string{"i-00000000"}})
	require.Equal(t, "InvalidInstanceID.NotFound", code(t, err))
	_, err = sdk(t, c, "wrong").DescribeInstances(ctx, &ec2.DescribeInstancesInput{})
	require.Equal(t, "SignatureDoesNotMatch", code(t, err))
	c.Throttle("DescribeInstances", 1, 1)
	_, err = client.DescribeInstances(ctx, &ec2.DescribeInstancesInput{})
	require.NoError(t, err)
	_, err = client.DescribeInstances(ctx, &ec2.DescribeInstancesInput{})
	require.Equal(t, "RequestLimitExceeded", code(t, err))
	c.Fail("RunInstances", ec2test.Fault{After: true})
	c.With(func(c *ec2test.Cloud) { c.Quota["m5.large"] = 0 })
	_, err = client.RunInstances(ctx, order("c"))
	var api smithy.APIError
	require.False(t, err == nil || errors.As(err, &api), "the answer is lost: %v", err)
	require.Len(t, c.Instances(), 1)
}
