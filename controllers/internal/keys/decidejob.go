package keys

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/relaypool/relaypool/api/v1alpha1"
)

// runStep plans the Job of a step, and reports whether the Job is complete.
func (d *decision) runStep(step v1alpha1.RotationStep, target int32, from, to []Key) bool {
	want := JobWanted{
		Name: JobName(d.pool, target, step), Step: step, Revision: target, From: mounts(from), To: mounts(to),
		Token: d.Pool.Annotations[AnnotationRetry],
	}
	want.InputsHash = inputsHash(want, "")
	return d.runJob(want, AnnotationRetry)
}

// runJob compares the wanted Job with the existing Job, plans the next action, and reports
// whether the Job is complete.
func (d *decision) runJob(want JobWanted, annotation string) bool {
	existing := d.jobNamed(want.Name)
	switch {
	case existing == nil && d.Blocked != "":
		d.wait("Job " + want.Name + " is not made yet: " + d.Blocked)
	case existing == nil:
		d.plan.Job = &want
		d.wait("Job " + want.Name + " is being made")
	case existing.Foreign:
		d.wait("Job " + want.Name + " belongs to somebody else: delete it, or wait until it is gone")
	case existing.Deleting:
		d.wait("the former Job " + want.Name + " is being deleted")
	case existing.InputsHash != want.InputsHash, existing.State == JobFailed && existing.Token != want.Token:
		d.plan.DeleteJobs = append(d.plan.DeleteJobs, *existing)
		d.wait("the former Job " + want.Name + " is being deleted")
	case existing.State == JobComplete:
		return true
	case existing.State == JobFailed:
		d.fail(want, existing.Message, annotation)
	default:
		want.Existing = existing
		d.plan.Job = &want
		d.wait(runningMessage(existing))
	}
	return false
}

// runningMessage returns the message about a running Job. It includes why the Job's last pod
// failed: the Job tries again by itself, but a person may be able to help.
func runningMessage(j *Job) string {
	text := "Job " + j.Name + " is running"
	if j.Message != "" {
		text += "; its last try ended with: " + shorten(j.Message, maxCause)
	}
	return text
}

// fail reports a failed step. The step waits for a person, because its Job has already
// tried several times.
func (d *decision) fail(want JobWanted, cause, annotation string) {
	if cause == "" {
		cause = "its pods left no message"
	}
	cause = shorten(cause, maxCause)
	message := fmt.Sprintf("Job %s failed: %s. Nothing is lost. See kubectl -n %s logs job/%s, correct the cause, then retry: "+
		"kubectl -n %s annotate relaypool %s --overwrite %s=\"$(date +%%s)\"",
		want.Name, cause, d.Pool.Namespace, want.Name, d.Pool.Namespace, d.pool, annotation)
	d.plan.Failed = true
	d.problem(v1alpha1.ReasonRotationFailed, "", message)
	d.wait(message)
}

// clearJobs plans the deletion of the Jobs of earlier rotations, which were kept so
// that people could read their messages.
func (d *decision) clearJobs(target int32) {
	for _, j := range d.Jobs {
		isCurrent := slices.ContainsFunc([]v1alpha1.RotationStep{v1alpha1.RotationFund, v1alpha1.RotationDrain, v1alpha1.RotationSweep},
			func(s v1alpha1.RotationStep) bool { return j.Name == JobName(d.pool, target, s) })
		if !isCurrent && !j.Foreign && !j.Deleting {
			d.plan.DeleteJobs = append(d.plan.DeleteJobs, j)
		}
	}
}

// inputsHash returns the hash of what a Job is for: its step, its revision, and its keys or the
// request. The names of Secrets stand for the keys, because the key in a Secret never
// changes.
func inputsHash(want JobWanted, request string) string {
	var text strings.Builder
	fmt.Fprintf(&text, "%s %d %q", want.Step, want.Revision, request)
	if request == "" {
		for _, mounts := range [][]Mount{want.From, want.To} {
			fmt.Fprintf(&text, " %q", mounts)
		}
	}
	sum := sha256.Sum256([]byte(text.String()))
	return hex.EncodeToString(sum[:8])
}
