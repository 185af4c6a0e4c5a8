//! How HubSpot writes the URL that it signs: with some of its escapes decoded.

/// Decodes the escapes of `: / ? @ ! $ ' ( ) * , ;`, and no other.
pub(crate) fn decode(url: &str) -> String {
    let mut decoded = String::with_capacity(url.len());
    let mut rest = url;
    while let Some(at) = rest.find('%') {
        decoded.push_str(&rest[..at]);
        let byte = rest.get(at + 1..at + 3).and_then(|hex| u8::from_str_radix(hex, 16).ok());
        if let Some(byte) = byte.filter(|byte| b":/?@!$'()*,;".contains(byte)) {
            decoded.push(char::from(byte));
            rest = &rest[at + 3..];
        } else {
            decoded.push('%');
            rest = &rest[at + 1..];
        }
    }
    decoded + rest
}

#[cfg(test)]
mod tests {
    use super::decode;

    #[test]
    fn an_ampersand_and_a_blank_stay_escaped() {
        assert_eq!(decode("a?x=%40%3a%2C&y=%20%26%"), "a?x=@:,&y=%20%26%");
    }
}
