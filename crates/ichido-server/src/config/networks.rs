//! A list of networks as people write it: `loopback`, `private`, `203.0.113.7`, `198.51.100.0/24`.
//!
//! It must never look a name up: an address is an address.

use std::net::IpAddr;

use serde::Deserialize;

/// Networks, separated by commas.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct Networks(Vec<Network>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Network {
    Loopback,
    Private,
    /// An address and how many of its first bits count.
    Prefix(IpAddr, u32),
}

impl TryFrom<String> for Networks {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let words = text.split(',').map(str::trim).filter(|word| !word.is_empty());
        words.map(network).collect::<Result<_, _>>().map(Self)
    }
}

fn network(word: &str) -> Result<Network, String> {
    let wrong = || {
        format!(
            "`{word}` is no network: write \"loopback\", \"private\", an address, or an address \
             and its prefix like 198.51.100.0/24"
        )
    };
    match word {
        "loopback" => return Ok(Network::Loopback),
        "private" => return Ok(Network::Private),
        _ => {}
    }
    let (address, bits) = word.split_once('/').map_or((word, None), |(a, b)| (a, Some(b)));
    let address: IpAddr = address.parse().map_err(|_| wrong())?;
    let width = if address.is_ipv4() { 32 } else { 128 };
    let bits = match bits {
        None => width,
        Some(bits) => bits.parse().ok().filter(|bits| *bits <= width).ok_or_else(wrong)?,
    };
    Ok(Network::Prefix(address, bits))
}

impl Networks {
    /// True when `address` is in one of them. An IPv4 address in an IPv6 one is the IPv4 address.
    pub(crate) fn contain(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.0.iter().any(|network| match *network {
            Network::Loopback => address.is_loopback(),
            Network::Private => is_private(address),
            Network::Prefix(prefix, bits) => first_bits(address, bits) == first_bits(prefix, bits),
        })
    }
}

/// Addresses that the internet does not route: ours, or a proxy's beside us.
fn is_private(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => {
            let [a, b, ..] = v4.octets();
            // 100.64.0.0/10 is what providers and clouds use behind their own gateways.
            v4.is_private() || v4.is_link_local() || (a == 100 && b & 0b1100_0000 == 64)
        }
        IpAddr::V6(v6) => v6.is_unique_local() || v6.is_unicast_link_local(),
    }
}

/// The address with all but its first `bits` zeroed.
pub(crate) fn first_bits(address: IpAddr, bits: u32) -> IpAddr {
    match address {
        IpAddr::V4(v4) => {
            let mask = u32::MAX.checked_shl(32 - bits.min(32)).unwrap_or(0);
            IpAddr::V4((v4.to_bits() & mask).into())
        }
        IpAddr::V6(v6) => {
            let mask = u128::MAX.checked_shl(128 - bits.min(128)).unwrap_or(0);
            IpAddr::V6((v6.to_bits() & mask).into())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contain(list: &str, address: &str) -> bool {
        let list = Networks::try_from(list.to_owned()).expect("a list");
        list.contain(address.parse().expect("an address"))
    }

    #[test]
    fn a_word_an_address_and_a_prefix_contain_what_they_say() {
        let list = "loopback, private, 203.0.113.7, 198.51.100.0/24, 2001:db8::/32";
        for inside in [
            "127.0.0.1",
            "::1",
            "::ffff:127.0.0.1",
            "10.1.2.3",
            "192.168.0.1",
            "169.254.0.1",
            "100.64.0.1",
            "fd00::1",
            "fe80::1",
            "203.0.113.7",
            "198.51.100.255",
            "::ffff:198.51.100.1",
            "2001:db8:ffff::1",
        ] {
            assert!(contain(list, inside), "{inside}");
        }
        for outside in ["203.0.113.8", "198.51.101.0", "2001:db9::1", "100.128.0.1", "172.32.0.1"] {
            assert!(!contain(list, outside), "{outside}");
        }
        assert!(contain("0.0.0.0/0", "1.2.3.4") && !contain("0.0.0.0/0", "::2"));
        assert!(!contain("", "127.0.0.1"));
    }

    #[test]
    fn what_is_no_network_is_refused_with_the_fix() {
        for word in ["localhost", "10.0.0.0/33", "10.0.0.0/", "10.0.0", "::/129", "a/b"] {
            let refused = Networks::try_from(word.to_owned()).expect_err("refused");
            assert!(refused.contains("198.51.100.0/24"), "{refused}");
        }
    }
}
