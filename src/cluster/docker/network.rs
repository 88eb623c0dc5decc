//! A container's place on the run's network, and its ports on loopback.

use super::engine::call;
use super::target::Target;
use crate::cluster::ClusterError;
use bollard::models::{
    ContainerInspectResponse, EndpointSettings, NetworkConnectRequest, NetworkDisconnectRequest,
};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

impl Target {
    /// Where a published port is now. One that the system chooses is another
    /// after every start, and after every return to the network.
    pub async fn address(&self, port: u16) -> Result<SocketAddr, ClusterError> {
        let what = format!("find port {port} of {}", self.node);
        let found = self.inspect(&what).await?;
        match published(&found, port) {
            Some(host_port) => Ok(SocketAddr::from((Ipv4Addr::LOCALHOST, host_port))),
            None => Err(ClusterError::Failed {
                what,
                reason: match self.absence(&found) {
                    Some(absence) => absence.to_owned(),
                    None => "the topology does not publish it on loopback".to_owned(),
                },
            }),
        }
    }

    pub async fn inner_address(&self) -> Result<IpAddr, ClusterError> {
        let what = format!("find {} on the network", self.node);
        let found = self.inspect(&what).await?;
        let address = self.endpoint(&found).and_then(|endpoint| {
            let address = endpoint.ip_address.as_ref()?;
            address.parse().ok()
        });
        address.ok_or_else(|| ClusterError::Failed {
            what,
            reason: self
                .absence(&found)
                .unwrap_or("it has no address")
                .to_owned(),
        })
    }

    /// With its published ports, which lead into this network; taking off what
    /// is off is fine.
    pub async fn disconnect(&self) -> Result<(), ClusterError> {
        let what = format!("take {} off the network", self.node);
        let request = NetworkDisconnectRequest {
            container: self.container.clone(),
            force: Some(true),
        };
        let _turn = self.engine.turn().await?;
        let disconnect = self.docker().disconnect_network(&self.network, request);
        match call(&what, disconnect).await {
            Err(_) if !self.is_connected(&what).await? => Ok(()),
            done => done,
        }
    }

    /// Under its name, and perhaps at another address; putting on what is on is
    /// fine.
    pub async fn connect(&self) -> Result<(), ClusterError> {
        let what = format!("put {} on the network", self.node);
        let request = NetworkConnectRequest {
            container: self.container.clone(),
            endpoint_config: Some(known_as(&self.node)),
        };
        let _turn = self.engine.turn().await?;
        let connect = self.docker().connect_network(&self.network, request);
        match call(&what, connect).await {
            Err(_) if self.is_connected(&what).await? => Ok(()),
            done => done,
        }
    }

    async fn is_connected(&self, what: &str) -> Result<bool, ClusterError> {
        let found = self.inspect(what).await?;
        Ok(self.endpoint(&found).is_some())
    }

    fn endpoint<'a>(&self, found: &'a ContainerInspectResponse) -> Option<&'a EndpointSettings> {
        let settings = found.network_settings.as_ref()?;
        settings.networks.as_ref()?.get(&self.network)
    }

    /// Why it cannot be reached at all, if so.
    fn absence(&self, found: &ContainerInspectResponse) -> Option<&'static str> {
        let running = found.state.as_ref().and_then(|state| state.running);
        if running != Some(true) {
            return Some("it is not running");
        }
        let off = self.endpoint(found).is_none();
        off.then_some("it is not on the run's network")
    }
}

/// A place on the network under this name.
pub fn known_as(name: &str) -> EndpointSettings {
    EndpointSettings {
        aliases: Some(vec![name.to_owned()]),
        ..Default::default()
    }
}

fn published(found: &ContainerInspectResponse, port: u16) -> Option<u16> {
    let ports = found.network_settings.as_ref()?.ports.as_ref()?;
    let bindings = ports.get(&format!("{port}/tcp"))?.as_ref()?;
    let mut host_ports = bindings
        .iter()
        .filter_map(|binding| binding.host_port.as_ref());
    host_ports.next()?.parse().ok()
}
