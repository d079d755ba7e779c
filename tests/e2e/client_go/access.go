package main

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coreinformers "k8s.io/client-go/informers/core/v1"
)

const (
	systemNamespace = "kube-system"
	trusted         = "extension-apiserver-authentication"
)

func delegateAccess(ctx context.Context, at *server) error {
	for _, each := range []func(context.Context, *server) error{readTrusted, reviewToken, reviewAccess} {
		if err := each(ctx, at); err != nil {
			return err
		}
	}
	return nil
}

// readTrusted follows the one config map that says whose certificates and headers are believed.
func readTrusted(ctx context.Context, at *server) error {
	informer := coreinformers.NewFilteredConfigMapInformer(at, systemNamespace, 0, nil,
		func(options *metav1.ListOptions) { options.FieldSelector = "metadata.name=" + trusted })
	seen, err := follow(informer)
	if err != nil {
		return err
	}
	go informer.RunWithContext(ctx)
	object, err := seen.await(ctx, "added", systemNamespace+"/"+trusted, anything)
	if err != nil {
		return err
	}
	data := object.(*corev1.ConfigMap).Data
	for _, key := range []string{"client-ca-file", "requestheader-client-ca-file"} {
		block, _ := pem.Decode([]byte(data[key]))
		if block == nil {
			return fmt.Errorf("%s holds no certificate: %q", key, data[key])
		}
		if _, err := x509.ParseCertificate(block.Bytes); err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
	}
	for _, key := range []string{"allowed-names", "extra-headers-prefix", "group-headers", "username-headers"} {
		var names []string
		if err := json.Unmarshal([]byte(data["requestheader-"+key]), &names); err != nil {
			return fmt.Errorf("requestheader-%s: %w", key, err)
		}
	}
	return nil
}

func reviewToken(ctx context.Context, at *server) error {
	account, err := at.CoreV1().ServiceAccounts(at.namespace).Create(
		ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "scraper"}}, metav1.CreateOptions{},
	)
	if err != nil {
		return err
	}
	issued, err := at.CoreV1().ServiceAccounts(at.namespace).CreateToken(
		ctx, account.Name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{},
	)
	if err != nil {
		return err
	}
	want := fmt.Sprintf("system:serviceaccount:%s:%s", at.namespace, account.Name)
	for token, authenticated := range map[string]bool{issued.Status.Token: true, "made-up": false} {
		review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}
		answer, err := at.AuthenticationV1().TokenReviews().Create(ctx, review, metav1.CreateOptions{})
		if err != nil {
			return err
		}
		if answer.Status.Authenticated != authenticated || authenticated && answer.Status.User.Username != want {
			return fmt.Errorf("token of %s: %+v", want, answer.Status)
		}
	}
	return nil
}

func reviewAccess(ctx context.Context, at *server) error {
	metrics := &authorizationv1.NonResourceAttributes{Path: "/metrics", Verb: "get"}
	for user, allowed := range map[string]bool{"system:kube-scheduler": false, "root": true} {
		spec := authorizationv1.SubjectAccessReviewSpec{User: user, NonResourceAttributes: metrics}
		if allowed {
			spec.Groups = []string{"system:masters"}
		}
		answer, err := at.AuthorizationV1().SubjectAccessReviews().Create(
			ctx, &authorizationv1.SubjectAccessReview{Spec: spec}, metav1.CreateOptions{},
		)
		if err != nil {
			return err
		}
		if answer.Status.Allowed != allowed {
			return fmt.Errorf("%s gets /metrics: %+v", user, answer.Status)
		}
	}
	binding := &authorizationv1.ResourceAttributes{Verb: "create", Resource: "pods", Subresource: "binding"}
	answer, err := at.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, &authorizationv1.SelfSubjectAccessReview{
		Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: binding},
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	if !answer.Status.Allowed {
		return fmt.Errorf("this client may bind: %+v", answer.Status)
	}
	return nil
}
