package berth

import (
	"context"
	"fmt"
	"log/slog"

	pb "berth.dev/plugin-sdk/go/internal/pluginv1"
)

const protocolVersion = 1

type identityService struct {
	pb.UnimplementedIdentityServiceServer
	server *Server
}

// Handshake introduces the plugin.
func (i *identityService) Handshake(
	ctx context.Context, request *pb.HandshakeRequest,
) (*pb.HandshakeResponse, error) {
	slog.Info("handshake", "host", request.HostName, "version", request.HostVersion,
		"protocol", request.SupportedVersions)
	plugin := i.server.plugin
	announced := plugin.capabilities()
	announced.TtrpcSocket = i.server.frames.name()
	return &pb.HandshakeResponse{
		Name:              plugin.Name,
		Version:           plugin.version(),
		SupportedVersions: []uint32{protocolVersion},
		Capabilities:      announced,
	}, nil
}

// Configure hands a profile's arguments to the plugin; every error goes back.
func (i *identityService) Configure(
	ctx context.Context, request *pb.ConfigureRequest,
) (*pb.ConfigureResponse, error) {
	return besides(ctx, i.server, "Configure", func(context.Context) (*pb.ConfigureResponse, error) {
		errors := i.server.session.configure(request)
		for _, problem := range errors {
			slog.Error("configure", "profile", request.Profile, "error", problem)
		}
		return &pb.ConfigureResponse{Errors: errors}, nil
	})
}

func (s *session) configure(request *pb.ConfigureRequest) []string {
	if request.Removed {
		s.remove(request.Profile)
		return nil
	}
	problems := append([]string(nil), request.HandshakeErrors...)
	if request.ProtocolVersion != protocolVersion {
		problems = append(problems, fmt.Sprintf("protocol_version: %d is not spoken here, %d is",
			request.ProtocolVersion, protocolVersion))
	}
	if len(problems) > 0 {
		return problems
	}
	profile := Profile{request.Profile, request.Shadow}
	taking := s.plugin.arguments()
	err := guarded("Arguments", func() { problems = taking.Take(profile, request.Arguments) })
	if err != nil {
		return []string{err.Error()}
	}
	if len(problems) == 0 {
		s.profiles[profile.Name] = profile
		s.announce()
	}
	return problems
}

func (s *session) remove(profile string) {
	if _, known := s.profiles[profile]; !known {
		return
	}
	delete(s.profiles, profile)
	s.plugin.arguments().Drop(profile)
	if s.plugin.ProfileRemoved != nil {
		_ = guarded("ProfileRemoved", func() { s.plugin.ProfileRemoved(profile) })
	}
	s.announce()
}

func (p *Plugin) arguments() Arguments {
	if p.Arguments == nil {
		return noArguments{}
	}
	return p.Arguments
}

func (p *Plugin) version() string {
	if p.Version == "" {
		return "0.0.0"
	}
	return p.Version
}
