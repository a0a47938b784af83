package parts_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/httpapi/web/parts"
)

// TestAJobsLinksLeadToTheWebAlone: what a tenant writes runs nothing, and the site that it leads to gets no hold of the page.
func TestAJobsLinksLeadToTheWebAlone(t *testing.T) {
	t.Parallel()
	require.Empty(t, parts.About(nil).String())
	require.Empty(t, parts.About(&drover.JobUIConfig{}).String())
	got := parts.About(&drover.JobUIConfig{Description: "<b>ours", Links: []*drover.JobUILink{
		{Label: "<i>wiki", URL: "https://wiki.example/a?b=\"c\""},
		{URL: "http://bare.example"},
		nil,
		{Label: "empty"},
		{Label: "script", URL: "javascript:alert(1)"},
		{Label: "data", URL: "data:text/html,x"},
		{Label: "here", URL: "/v1/jobs"},
		{Label: "broken", URL: "https://%zz"},
	}}).String()
	const rel = `" rel="noopener noreferrer nofollow">`
	require.Equal(t, `<p><bdi>&lt;b&gt;ours</bdi></p><ul><li><a href="https://wiki.example/a?b=&#34;c&#34;`+
		rel+`<bdi>&lt;i&gt;wiki</bdi></a></li>`+
		`<li><a href="http://bare.example`+rel+`<bdi>http://bare.example</bdi></a></li><li><bdi>script</bdi></li><li><bdi>data</bdi></li>`+
		`<li><bdi>here</bdi></li><li><bdi>broken</bdi></li></ul>`, got)
}
