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

/// The addresses of a network.
#[derive(Clone, Copy, Debug)]
pub struct Subnet {
    /// The address of this machine there.
    pub gateway: IpAddr,
    base: IpAddr,
    /// How many bits all addresses have in common.
    bits: u32,
}

impl Subnet {
    pub async fn of(engine: &Engine, network: &str) -> ClusterResult<Subnet> {
        let what = "find this machine on the run's network";
        let inspect = engine.docker().inspect_network(network, None);
        let found = call(what, inspect).await?;
        let configs = found.ipam.and_then(|ipam| ipam.config);
        let mut subnets = configs
            .into_iter()
            .flatten()
            .filter_map(|config| Subnet::parse(&config.gateway?, &config.subnet?));
        let none = || ClusterError::failed(what, "the network has no gateway");
        subnets.next().ok_or_else(none)
    }

    pub fn parse(gateway: &str, subnet: &str) -> Option<Subnet> {
        let (base, bits) = subnet.split_once('/')?;
        // Engines differ in whether they write the length of the network behind this.
        let gateway = gateway.split('/').next()?;
        Some(Subnet {
            gateway: gateway.parse().ok()?,
            base: base.parse().ok()?,
            bits: bits.parse().ok()?,
        })
    }

    /// Returns whether somebody else on the network has this address.
    pub fn has(&self, peer: IpAddr) -> bool {
        let differs = match (self.base, peer) {
            (IpAddr::V4(base), IpAddr::V4(peer)) => {
                let differing = base.to_bits() ^ peer.to_bits();
                differing.leading_zeros() < self.bits
            }
            (IpAddr::V6(base), IpAddr::V6(peer)) => {
                let differing = base.to_bits() ^ peer.to_bits();
                differing.leading_zeros() < self.bits
            }
            (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => true,
        };
        !differs && peer != self.gateway
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subnet_has_the_containers_on_it_and_nobody_else() {
        let subnet = Subnet::parse("172.18.0.1", "172.18.0.0/16").unwrap();
        for (peer, is_in) in [
            ("172.18.0.2", true),
            ("172.18.255.254", true),
            ("172.18.0.1", false),
            ("172.19.0.2", false),
            ("127.0.0.1", false),
            ("::1", false),
        ] {
            assert_eq!(subnet.has(peer.parse().unwrap()), is_in, "{peer}");
        }
        let six = Subnet::parse("fd00::1/64", "fd00::/64").unwrap();
        assert!(six.has("fd00::2".parse().unwrap()));
        assert!(!six.has("fd00:0:0:1::2".parse().unwrap()));
    }
}
