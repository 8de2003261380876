package deploy

import (
	"testing"
	"time"
)

func TestDecide(t *testing.T) {
	for name, test := range map[string]struct {
		facts     Facts
		situation Situation
		action    Action
	}{
		"nobody knows it":                             {Facts{Listed: true}, Unknown, Forget},
		"new":                                         {Facts{Listed: true, Desired: true}, Outdated, Deploy},
		"objects leave, and another may ask":          {Facts{Listed: true, Desired: true, Recorded: true, Settling: time.Second}, Settling, Rest},
		"marked a moment ago":                         {Facts{Listed: true, Desired: true, Recorded: true, Mark: true, Settling: time.Second}, Settling, Rest},
		"drift is corrected at once":                  {Facts{Desired: true, Recorded: true, Finished: true, Noted: true, Drifted: true, Correct: true, Settling: time.Second}, Drifted, Correct},
		"new and paused":                              {Facts{Listed: true, Desired: true, Hold: "paused"}, Held, Rest},
		"new and restricted":                          {Facts{Listed: true, Desired: true, Refusal: "serviceAccount"}, Refused, Rest},
		"restricted comes before paused":              {Facts{Desired: true, Refusal: "serviceAccount", Hold: "paused"}, Refused, Rest},
		"a dependency is missing, the hub is away":    {Facts{Recorded: true, Blocked: []string{"db"}}, Blocked, Rest},
		"removed after what depends on it":            {Facts{Desired: true, Recorded: true, Mark: true, Dependents: []string{"web"}}, Needed, Rest},
		"removal goes on after what depends on it":    {Facts{Desired: true, Recorded: true, Mark: true, Removing: true, Dependents: []string{"web"}}, Needed, Rest},
		"withdrawn while it waits for dependents":     {Facts{Desired: true, Recorded: true, Removing: true, Dependents: []string{"web"}}, Withdrawn, Unmark},
		"a dependency is missing":                     {Facts{Desired: true, Blocked: []string{"db"}}, Blocked, Rest},
		"a dependency is missing, but all is applied": {Facts{Desired: true, Recorded: true, Finished: true, Noted: true, Blocked: []string{"db"}}, Settled, Rest},
		"all is applied":                              {Facts{Desired: true, Recorded: true, Finished: true, Noted: true}, Settled, Rest},
		"only settings changed":                       {Facts{Desired: true, Recorded: true, Finished: true}, Unnoted, Note},
		"settings could not be stored":                {Facts{Desired: true, Recorded: true, Finished: true, RetryIn: time.Second}, BackingOff, Rest},
		"a mark could not be taken back":              {Facts{Desired: true, Recorded: true, Removing: true, RetryIn: time.Second}, BackingOff, Rest},
		"a new version":                               {Facts{Desired: true, Recorded: true}, Outdated, Deploy},
		"failed a moment ago":                         {Facts{Desired: true, Recorded: true, RetryIn: time.Second}, BackingOff, Rest},
		"the release waits":                           {Facts{Desired: true, Recorded: true, Waits: "a hook", WaitIn: time.Second}, Awaiting, Rest},
		"the release has waited":                      {Facts{Desired: true, Recorded: true, Waits: "a hook"}, Outdated, Deploy},
		"the release takes too long":                  {Facts{Desired: true, Recorded: true, Waits: "an object", Late: true, WaitIn: time.Second}, TooLate, Rest},
		"the release has failed":                      {Facts{Desired: true, Recorded: true, Failed: "a hook"}, GivenUp, Rest},
		"the release has failed, hub away":            {Facts{Recorded: true, Failed: "a hook"}, GivenUp, Rest},
		"what ran before is put back":                 {Facts{Desired: true, Recorded: true, Failed: "a hook", Undo: true}, Outdated, Deploy},
		"paused while the release waits":              {Facts{Desired: true, Recorded: true, Waits: "a hook", WaitIn: time.Second, Hold: "paused"}, Held, Rest},
		"marked while the release waits":              {Facts{Desired: true, Recorded: true, Waits: "a hook", WaitIn: time.Second, Mark: true}, Marked, Remove},
		"drift, not to be corrected":                  {Facts{Desired: true, Recorded: true, Finished: true, Noted: true, Drifted: true}, Settled, Rest},
		"drift, to be corrected":                      {Facts{Desired: true, Recorded: true, Finished: true, Noted: true, Drifted: true, Correct: true}, Drifted, Correct},
		"drift while paused":                          {Facts{Desired: true, Recorded: true, Finished: true, Noted: true, Drifted: true, Correct: true, Hold: "paused"}, Held, Rest},
		"drift again right after a correction":        {Facts{Desired: true, Recorded: true, Finished: true, Noted: true, Drifted: true, Correct: true, RetryIn: time.Second}, BackingOff, Rest},
		"generation went back":                        {Facts{Desired: true, Recorded: true, WentBack: true}, WentBack, Rest},
		"deleted without a mark":                      {Facts{Desired: true, Recorded: true, Deleting: true}, Deleting, Rest},
		"deleted with a mark":                         {Facts{Desired: true, Recorded: true, Deleting: true, Mark: true}, Marked, Remove},
		"marked while paused":                         {Facts{Desired: true, Recorded: true, Mark: true, Hold: "paused"}, Marked, Remove},
		"marked although restricted":                  {Facts{Desired: true, Recorded: true, Mark: true, Refusal: "serviceAccount"}, Marked, Remove},
		"marked, and nothing is left":                 {Facts{Desired: true, Mark: true}, Removed, Rest},
		"an old mark comes back with a backup":        {Facts{Desired: true, Recorded: true, Mark: true, Older: true}, WentBack, Rest},
		"a removal waits for a finalizer":             {Facts{Desired: true, Recorded: true, Mark: true, Removing: true, RetryIn: time.Second}, BackingOff, Rest},
		"the mark was withdrawn":                      {Facts{Desired: true, Recorded: true, Removing: true}, Withdrawn, Unmark},
		"vanished while being removed":                {Facts{Listed: true, Recorded: true, Removing: true}, Marked, Remove},
		"vanished from the hub":                       {Facts{Listed: true, Recorded: true, Finished: true}, Kept, Rest},
		"vanished unfinished":                         {Facts{Listed: true, Recorded: true}, Kept, Rest},
		"vanished unfinished, drift to be corrected":  {Facts{Listed: true, Recorded: true, Drifted: true, Correct: true}, Kept, Rest},
		"vanished, drift to be corrected":             {Facts{Listed: true, Recorded: true, Finished: true, Drifted: true, Correct: true}, Drifted, Correct},
		"the hub is away, all is applied":             {Facts{Recorded: true, Finished: true}, Settled, Rest},
		"the hub is away, unfinished":                 {Facts{Recorded: true}, Outdated, Deploy},
		"the hub is away, drift to be corrected":      {Facts{Recorded: true, Finished: true, Drifted: true, Correct: true}, Drifted, Correct},
	} {
		t.Run(name, func(t *testing.T) {
			got := Decide(test.facts)
			if got.Situation != test.situation || got.Action != test.action {
				t.Errorf("got %s, action %d; want %s, action %d", got.Situation, got.Action, test.situation, test.action)
			}
		})
	}
}

// TestNothingIsRemovedWithoutAMark tries every combination of facts.
func TestNothingIsRemovedWithoutAMark(t *testing.T) {
	const bits = 13
	for n := range 1 << bits {
		bit := func(i int) bool { return n&(1<<i) != 0 }
		f := Facts{
			Listed: bit(0), Desired: bit(1), Recorded: bit(2), Deleting: bit(3), WentBack: bit(4),
			Finished: bit(5), Noted: bit(6), Drifted: bit(7), Correct: bit(8), Removing: bit(9), Mark: bit(10),
		}
		f.Older = bit(12)
		if bit(11) {
			f.Hold = "paused"
		}
		d := Decide(f)
		marked := f.Mark || f.Removing && !f.Desired
		if d.Action == Remove && (!marked || !f.Recorded && !f.Removing) {
			t.Fatalf("%+v is removed", f)
		}
		if d.Action == Remove && f.Older && f.Desired && !f.Removing && f.Recorded {
			t.Fatalf("%+v is removed by an old mark", f)
		}
		if d.Action == Forget && f.Recorded {
			t.Fatalf("%+v is forgotten", f)
		}
		changes := d.Action == Deploy || d.Action == Correct
		if changes && f.Desired && (f.Hold != "" || f.WentBack || f.Deleting) {
			t.Fatalf("%+v is changed", f)
		}
	}
}
