package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	pb "berth.dev/same-label/pluginv1"
)

const version = 1

// identityService says who the plugin is, and takes each profile's arguments.
type identityService struct {
	pb.UnimplementedIdentityServiceServer
	*session
}

func (s identityService) Handshake(context.Context, *pb.HandshakeRequest) (*pb.HandshakeResponse, error) {
	return &pb.HandshakeResponse{
		Name:              "same-label",
		Version:           "0.1.0",
		SupportedVersions: []uint32{version},
		Capabilities: &pb.Capabilities{
			ExtensionPoints: []pb.ExtensionPoint{
				pb.ExtensionPoint_EXTENSION_POINT_FILTER,
				pb.ExtensionPoint_EXTENSION_POINT_SCORE,
			},
			Events: []*pb.EventInterest{{
				Resource: "Node",
				Actions: []pb.ActionType{
					pb.ActionType_ACTION_TYPE_ADD,
					pb.ActionType_ACTION_TYPE_UPDATE_NODE_LABEL,
				},
			}},
			PodFields: &pb.PodFields{Paths: []string{"/metadata/labels"}},
			State:     &pb.StateInterest{Nodes: true},
			NodeLocal: true,
		},
	}, nil
}

func (s identityService) Configure(_ context.Context, request *pb.ConfigureRequest) (*pb.ConfigureResponse, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	defer s.changed()
	if request.Removed {
		delete(s.labels, request.Profile)
		return &pb.ConfigureResponse{}, nil
	}
	if request.ProtocolVersion != version {
		return &pb.ConfigureResponse{Errors: []string{"another version of the protocol is spoken here"}}, nil
	}
	label, err := labelIn(request.Arguments)
	if err != nil {
		return &pb.ConfigureResponse{Errors: []string{fmt.Sprintf("arguments: %v", err)}}, nil
	}
	s.labels[request.Profile] = label
	return &pb.ConfigureResponse{}, nil
}

// labelIn reads the arguments, nil where the user gave none.
func labelIn(given []byte) (string, error) {
	arguments := struct {
		Label string `json:"label"`
	}{"team"}
	if given == nil {
		return arguments.Label, nil
	}
	decoder := json.NewDecoder(bytes.NewReader(given))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&arguments); err != nil {
		return "", err
	}
	if arguments.Label == "" {
		return "", errors.New("label: must not be empty")
	}
	return arguments.Label, nil
}
