// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package cloudprovider

import (
	"context"
	"fmt"
	"maps"

	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	cloudprovider "k8s.io/cloud-provider"
	"k8s.io/cloud-provider/app"
	ccmconfig "k8s.io/cloud-provider/app/config"
	servicecontroller "k8s.io/cloud-provider/controllers/service"
	"k8s.io/cloud-provider/names"
	controllersmetrics "k8s.io/component-base/metrics/prometheus/controllers"
	controllermanagerapp "k8s.io/controller-manager/app"
	"k8s.io/controller-manager/controller"
	"k8s.io/klog/v2"
)

// Controllers returns the controllers of the cloud controller manager, under the framework's names: its own, with ours
// beside them. Their clients have names of our own.
func Controllers() map[string]app.ControllerInitFuncConstructor {
	controllers := maps.Clone(app.DefaultInitFuncConstructors)
	replace := func(name string, constructor func(framework app.InitFuncConstructor) app.InitFuncConstructor) {
		c := controllers[name]
		c.Constructor = constructor(c.Constructor)
		controllers[name] = c
	}
	for name, client := range map[string]string{
		names.CloudNodeController:          nodeClientName,
		names.CloudNodeLifecycleController: lifecycleClientName,
		names.ServiceLBController:          serviceClientName,
	} {
		c := controllers[name]
		c.InitContext.ClientName = client
		controllers[name] = c
	}
	replace(names.CloudNodeController, withNodeInfo)
	replace(names.ServiceLBController, func(app.InitFuncConstructor) app.InitFuncConstructor { return serviceController })
	// Routes are not offered. The name stays known, for command lines that switch the controller off.
	replace(names.NodeRouteController, func(app.InitFuncConstructor) app.InitFuncConstructor { return noController })
	return controllers
}

func noController(app.ControllerInitContext, *ccmconfig.CompletedConfig, cloudprovider.Interface) app.InitFunc {
	return func(context.Context, controllermanagerapp.ControllerContext) (controller.Interface, bool, error) {
		return nil, false, nil
	}
}

// withNodeInfo starts the controller of labels and annotations together with the framework's node controller.
func withNodeInfo(framework app.InitFuncConstructor) app.InitFuncConstructor {
	return func(initContext app.ControllerInitContext, config *ccmconfig.CompletedConfig, cloud cloudprovider.Interface) app.InitFunc {
		start := framework(initContext, config, cloud)
		return func(ctx context.Context, controllerContext controllermanagerapp.ControllerContext) (controller.Interface, bool, error) {
			p, ok := cloud.(*Provider)
			if !ok {
				return nil, false, fmt.Errorf("cloud provider is a %T", cloud)
			}
			if err := p.StartNodeInfo(ctx, config.SharedInformers); err != nil {
				return nil, false, err
			}
			return start(ctx, controllerContext)
		}
	}
}

// StartNodeInfo starts the controllers that keep labels and annotations of nodes right and, where that is asked for, give
// them pod CIDRs and tag their instances. Initialize comes before it.
func (p *Provider) StartNodeInfo(ctx context.Context, factory informers.SharedInformerFactory) error {
	c, err := newNodeInfo(p, p.nodeClient, factory.Core().V1().Nodes())
	if err != nil {
		return fmt.Errorf("node info controller: %w", err)
	}
	go c.queue.run(ctx, nodeInfoWorkers)
	if p.options.PodCIDRs != nil {
		podCIDRs, err := newPodCIDRController(p, p.nodeClient, factory.Core().V1().Nodes())
		if err != nil {
			return fmt.Errorf("pod CIDR controller: %w", err)
		}
		go podCIDRs.queue.run(ctx, podCIDRWorkers)
	}
	if p.options.InstanceTagging != nil {
		tagging, err := newTagging(p, factory.Core().V1().Nodes())
		if err != nil {
			return fmt.Errorf("instance tagging controller: %w", err)
		}
		go tagging.queue.run(ctx, taggingWorkers)
	}
	return nil
}

// serviceController starts the framework's service controller on an informer that gives us a way into its queue.
func serviceController(initContext app.ControllerInitContext, config *ccmconfig.CompletedConfig, cloud cloudprovider.Interface) app.InitFunc {
	return func(ctx context.Context, controllerContext controllermanagerapp.ControllerContext) (controller.Interface, bool, error) {
		p, ok := cloud.(*Provider)
		if !ok {
			return nil, false, fmt.Errorf("cloud provider is a %T", cloud)
		}
		if p.balancers == nil {
			klog.FromContext(ctx).Info("Load balancers are disabled in the cloud config")
			return nil, false, nil
		}
		err := p.StartServiceController(ctx, ServiceControllerOptions{
			Client:      config.ClientBuilder.ClientOrDie(initContext.ClientName),
			Informers:   config.SharedInformers,
			ClusterName: config.ComponentConfig.KubeCloudShared.ClusterName,
			Workers:     int(config.ComponentConfig.ServiceController.ConcurrentServiceSyncs),
			Metrics:     controllerContext.ControllerManagerMetrics,
		})
		return nil, err == nil, err
	}
}

// ServiceControllerOptions say how to start the service controller.
type ServiceControllerOptions struct {
	Client      kubernetes.Interface
	Informers   informers.SharedInformerFactory
	ClusterName string
	Workers     int
	Metrics     *controllersmetrics.ControllerManagerMetrics
}

// StartServiceController starts the framework's service controller, and our pass over all balancers beside it. Initialize
// comes before it.
func (p *Provider) StartServiceController(ctx context.Context, o ServiceControllerOptions) error {
	slim(o.Informers.Core().V1().Services().Informer(), slimService)
	queue := newServiceQueue(o.Informers.Core().V1().Services())
	nodes := o.Informers.Core().V1().Nodes()
	framework, err := servicecontroller.New(p, o.Client, queue, newNodeEvents(nodes), o.ClusterName, utilfeature.DefaultFeatureGate)
	if err != nil {
		return fmt.Errorf("service controller: %w", err)
	}
	p.balancers.setQueue(queue)
	watch, err := newWatchServices(p.balancers, queue, nodes, p.options.ServiceResync)
	if err != nil {
		return fmt.Errorf("service controller: %w", err)
	}
	go framework.Run(ctx, o.Workers, o.Metrics)
	go watch.run(ctx)
	go p.balancers.support.secrets.run(ctx, watch)
	return nil
}
