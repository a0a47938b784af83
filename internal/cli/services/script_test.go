package services_test

import (
	"testing"

	"github.com/drover-project/drover/internal/cli/clitest"
)

func TestScripts(t *testing.T) {
	t.Parallel()
	clitest.Run(t)
}
