//! A container's address on the run's network, and its ports on loopback.

use super::*;
use bollard::models::{
    ContainerInspectResponse, EndpointSettings, NetworkConnectRequest, NetworkDisconnectRequest,
};
use std::net::Ipv4Addr;

impl Target {
    /// Returns the address of a published port now. A port that the system chooses changes with
    /// every start, and with every return to the network.
    pub async fn address(&self, port: u16) -> ClusterResult<SocketAddr> {
        let what = format!("find port {port} of {}", self.node);
        let found = self.inspect(&what).await?;
        match published(&found, port) {
            Some(host_port) => Ok(SocketAddr::from((Ipv4Addr::LOCALHOST, host_port))),
            None => Err(ClusterError::failed(
                what,
                match self.absence(&found) {
                    Some(absence) => absence.to_owned(),
                    None => "the topology does not publish it on loopback".to_owned(),
                },
            )),
        }
    }

    pub async fn inner_address(&self) -> ClusterResult<IpAddr> {
        let what = format!("find {} on the network", self.node);
        let found = self.inspect(&what).await?;
        let address = self.endpoint(&found).and_then(|endpoint| {
            let address = endpoint.ip_address.as_ref()?;
            address.parse().ok()
        });
        address.ok_or_else(|| {
            ClusterError::failed(
                what,
                self.absence(&found)
                    .unwrap_or("it has no address")
                    .to_owned(),
            )
        })
    }

    /// Takes it off the network, with its published ports, which lead into this network; it is fine
    /// if it is off already.
    pub async fn disconnect(&self) -> ClusterResult {
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

    /// Puts it on the network under its name, perhaps at another address; it is fine if it is on
    /// already.
    pub async fn connect(&self) -> ClusterResult {
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

    async fn is_connected(&self, what: &str) -> ClusterResult<bool> {
        let found = self.inspect(what).await?;
        Ok(self.endpoint(&found).is_some())
    }

    fn endpoint<'a>(&self, found: &'a ContainerInspectResponse) -> Option<&'a EndpointSettings> {
        let settings = found.network_settings.as_ref()?;
        settings.networks.as_ref()?.get(&self.network)
    }

    /// Returns why it cannot be reached; None if it can.
    fn absence(&self, found: &ContainerInspectResponse) -> Option<&'static str> {
        let running = found.state.as_ref().and_then(|state| state.running);
        if running != Some(true) {
            return Some("it is not running");
        }
        let off = self.endpoint(found).is_none();
        off.then_some("it is not on the run's network")
    }
}

/// Returns the settings that give a container this name on the network.
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
