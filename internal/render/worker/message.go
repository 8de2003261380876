package worker

import (
	"fmt"
	"time"

	"github.com/flotilla-sh/flotilla/internal/fault"
	"github.com/flotilla-sh/flotilla/internal/render"
	"github.com/flotilla-sh/flotilla/internal/source"
	"github.com/flotilla-sh/flotilla/internal/templating"
)

// hello is the first message to a child.
type hello struct {
	MemoryLimit int64 `json:"memoryLimit"`
	OutputLimit int64 `json:"outputLimit"`
	// Profiles is a directory for a CPU profile; none where empty.
	Profiles string `json:"profiles,omitempty"`
}

// order asks a child for a render. Its files follow as parts, by Paths, where
// WithFiles is set; otherwise the child has them from an earlier order, or asks.
type order struct {
	Request   render.Request `json:"request"`
	WithFiles bool           `json:"withFiles,omitempty"`
	Paths     []string       `json:"paths,omitempty"`
	// SameCluster is set where the capabilities are those of the order before,
	// and are not repeated: most clusters of a fleet offer the same.
	SameCluster bool `json:"sameCluster,omitempty"`
}

// reply is a child's answer. The objects' JSON follows as parts.
type reply struct {
	// NeedFiles asks for the order again, with the files.
	NeedFiles bool           `json:"needFiles,omitempty"`
	Result    *render.Result `json:"result,omitempty"`
	// Numbers are those of the objects; see sender.
	Numbers []int    `json:"numbers,omitempty"`
	Failure *failure `json:"failure,omitempty"`
}

// failure carries an error and its kind across the pipe.
type failure struct {
	Message string        `json:"message"`
	Kind    fault.Kind    `json:"kind"`
	Reason  string        `json:"reason,omitempty"`
	After   time.Duration `json:"after,omitempty"`
	Asked   []string      `json:"asked,omitempty"`
	// Notes are the parts of the error, where any has a place.
	Notes []fault.Note `json:"notes,omitempty"`
	// Lacks is what templates need of the cluster and it lacks.
	Lacks []templating.Reference `json:"lacks,omitempty"`
	// HasAsked tells an empty list of questions from none.
	HasAsked bool `json:"hasAsked,omitempty"`
}

// pack takes the files out of a request.
func pack(req render.Request, withFiles bool) (order, [][]byte) {
	o := order{Request: req, WithFiles: withFiles}
	o.Request.SourceDigest = render.SourceDigest(&req)
	o.Request.Files = nil
	if !withFiles {
		return o, nil
	}
	parts := make([][]byte, len(req.Files))
	for i, file := range req.Files {
		o.Paths = append(o.Paths, file.Path)
		parts[i] = file.Data
	}
	return o, parts
}

// files puts the files of an order together.
func (o *order) files(parts [][]byte) ([]source.File, error) {
	if len(parts) != len(o.Paths) {
		return nil, fmt.Errorf("%d files for %d paths", len(parts), len(o.Paths))
	}
	files := make([]source.File, len(parts))
	for i := range parts {
		files[i] = source.File{Path: o.Paths[i], Data: parts[i]}
	}
	return files, nil
}

// reply takes the objects' JSON out of a result.
func (s *sender) reply(result *render.Result, err error) (reply, [][]byte) {
	if err != nil {
		return reply{Failure: packFailure(err)}, nil
	}
	light := *result
	light.Warnings = shortened(result.Warnings)
	light.Objects = make([]render.Object, len(result.Objects))
	parts, numbers := make([][]byte, len(result.Objects)), make([]int, len(result.Objects))
	for i, object := range result.Objects {
		numbers[i], parts[i] = s.pack(object.JSON)
		object.JSON = nil
		light.Objects[i] = object
	}
	return reply{Result: &light, Numbers: numbers}, parts
}

// result is the reverse of reply.
func (r *receiver) result(answer *reply, parts [][]byte) (*render.Result, error) {
	if answer.Failure != nil {
		return nil, answer.Failure.unpack()
	}
	result := answer.Result
	if result == nil || len(parts) != len(result.Objects) || len(parts) != len(answer.Numbers) {
		return nil, fmt.Errorf("the render process sent %d objects and no fitting result", len(parts))
	}
	for i := range parts {
		text, err := r.unpack(answer.Numbers[i], parts[i])
		if err != nil {
			return nil, err
		}
		result.Objects[i].JSON = text
	}
	return result, nil
}
