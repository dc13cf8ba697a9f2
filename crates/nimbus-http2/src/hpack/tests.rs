//! The examples of RFC 7541, appendix C, and what is no HPACK.

use proptest::prelude::*;

use super::*;

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.chars().filter_map(|c| c.to_digit(16)).map(|digit| digit as u8).collect();
    digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}

fn decode(decoder: &mut Decoder, block: &[u8]) -> Result<String, Broken> {
    let mut text = Vec::new();
    decoder.decode(block, |name, value| {
        text.push(format!("{}: {}", String::from_utf8_lossy(name), String::from_utf8_lossy(value)));
    })?;
    Ok(text.join("\n"))
}

/// Each block, what is in it, and the size of the table after it.
fn check(capacity: usize, blocks: &[(&str, &str, usize)]) {
    let mut decoder = Decoder::new(capacity);
    for (block, expected, size) in blocks {
        assert_eq!(decode(&mut decoder, &hex(block)).unwrap(), *expected);
        assert_eq!(decoder.table_size(), *size, "after {expected}");
    }
}

const FIRST: &str = ":method: GET\n:scheme: http\n:path: /\n:authority: www.example.com";
const SECOND: &str = ":method: GET\n:scheme: http\n:path: /\n:authority: www.example.com\ncache-control: no-cache";
const THIRD: &str =
    ":method: GET\n:scheme: https\n:path: /index.html\n:authority: www.example.com\ncustom-key: custom-value";

const FOUND: &str = ":status: 302\ncache-control: private\ndate: Mon, 21 Oct 2013 20:13:21 GMT\nlocation: \
                     https://www.example.com";
const MOVED: &str = ":status: 307\ncache-control: private\ndate: Mon, 21 Oct 2013 20:13:21 GMT\nlocation: \
                     https://www.example.com";
const FINE: &str = ":status: 200\ncache-control: private\ndate: Mon, 21 Oct 2013 20:13:22 GMT\nlocation: \
                    https://www.example.com\ncontent-encoding: gzip\nset-cookie: \
                    foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1";

#[test]
fn integers_are_those_of_appendix_c_1() {
    fn check(bits: u8, bytes: &[u8], expected: usize) {
        let mut rest = bytes;
        assert_eq!((integer::read(&mut rest, bits), rest.len()), (Ok(expected), 0));
        let mut written = Vec::new();
        integer::write(&mut written, 0, bits, expected);
        assert_eq!(written, bytes);
    }
    check(5, &[0x0a], 10);
    check(5, &[0x1f, 0x9a, 0x0a], 1_337);
    check(8, &[0x2a], 42);
}

#[test]
fn literals_are_those_of_appendix_c_2() {
    let kept = "400a 6375 7374 6f6d 2d6b 6579 0d63 7573 746f 6d2d 6865 6164 6572";
    check(4_096, &[(kept, "custom-key: custom-header", 55)]);
    check(4_096, &[("040c 2f73 616d 706c 652f 7061 7468", ":path: /sample/path", 0)]);
    check(4_096, &[("1008 7061 7373 776f 7264 0673 6563 7265 74", "password: secret", 0)]);
    check(4_096, &[("82", ":method: GET", 0)]);
}

#[test]
fn requests_are_those_of_appendix_c_3() {
    check(
        4_096,
        &[
            ("8286 8441 0f77 7777 2e65 7861 6d70 6c65 2e63 6f6d", FIRST, 57),
            ("8286 84be 5808 6e6f 2d63 6163 6865", SECOND, 110),
            ("8287 85bf 400a 6375 7374 6f6d 2d6b 6579 0c63 7573 746f 6d2d 7661 6c75 65", THIRD, 164),
        ],
    );
}

#[test]
fn compressed_requests_are_those_of_appendix_c_4() {
    check(
        4_096,
        &[
            ("8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff", FIRST, 57),
            ("8286 84be 5886 a8eb 1064 9cbf", SECOND, 110),
            ("8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf", THIRD, 164),
        ],
    );
}

#[test]
fn a_small_table_forgets_as_in_appendix_c_5() {
    check(
        256,
        &[
            (
                "4803 3330 3258 0770 7269 7661 7465 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 3120
                 474d 546e 1768 7474 7073 3a2f 2f77 7777 2e65 7861 6d70 6c65 2e63 6f6d",
                FOUND,
                222,
            ),
            ("4803 3330 37c1 c0bf", MOVED, 222),
            (
                "88c1 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 3220 474d 54c0 5a04 677a 6970 7738
                 666f 6f3d 4153 444a 4b48 514b 425a 584f 5157 454f 5049 5541 5851 5745 4f49 553b 206d 6178 2d61 6765 3d33
                 3630 303b 2076 6572 7369 6f6e 3d31",
                FINE,
                215,
            ),
        ],
    );
}

#[test]
fn a_small_table_forgets_as_in_appendix_c_6() {
    check(
        256,
        &[
            (
                "4882 6402 5885 aec3 771a 4b61 96d0 7abe 9410 54d4 44a8 2005 9504 0b81 66e0 82a6 2d1b ff6e 919d 29ad 1718
                 63c7 8f0b 97c8 e9ae 82ae 43d3",
                FOUND,
                222,
            ),
            ("4883 640e ffc1 c0bf", MOVED, 222),
            (
                "88c1 6196 d07a be94 1054 d444 a820 0595 040b 8166 e084 a62d 1bff c05a 839b d9ab 77ad 94e7 821d d7f2 e6c7
                 b335 dfdf cd5b 3960 d5af 2708 7f36 72c1 ab27 0fb5 291f 9587 3160 65c0 03ed 4ee5 b106 3d50 07",
                FINE,
                215,
            ),
        ],
    );
}

#[test]
fn what_is_no_block_is_refused() {
    for (block, why) in [
        ("80", "index 0 (section 6.1)"),
        ("be", "an index beyond both tables (2.3.3)"),
        ("3fe2 1f", "a larger table than was offered (6.3)"),
        ("82 20", "a change of the table after a field (4.2)"),
        ("40", "a literal without a name"),
        ("400a 61", "a name that is longer than the block"),
        ("ff ffff ffff ff7f", "an integer that is too large (5.1)"),
        ("ff 8080 8080 00", "an integer with more zeros than are needed"),
        ("0081 fe 00", "padding that is no beginning of the end (5.2)"),
        ("0082 ffff 00", "padding of more than seven bits (5.2)"),
        ("0084 ffff fffc 00", "the end in the middle of a string (5.2)"),
    ] {
        assert_eq!(decode(&mut Decoder::new(4_096), &hex(block)), Err(Broken), "{why}");
    }
}

#[test]
fn a_peer_that_makes_the_table_smaller_makes_us_forget() {
    let mut decoder = Decoder::new(4_096);
    decode(&mut decoder, &hex("400a 6375 7374 6f6d 2d6b 6579 0d63 7573 746f 6d2d 6865 6164 6572")).unwrap();
    assert_eq!(decode(&mut decoder, &hex("20 3fe1 1f")), Ok(String::new()));
    assert_eq!(decoder.table_size(), 0);
    assert_eq!(decode(&mut decoder, &hex("be")), Err(Broken));
}

/// An entry that is larger than the table empties it (section 4.4).
#[test]
fn what_does_not_fit_empties_the_table() {
    let mut decoder = Decoder::new(64);
    decode(&mut decoder, &hex("4001 6101 62")).unwrap();
    assert_eq!(decoder.table_size(), 34);
    let large = [&[0x40, 1, b'c', 40][..], &[b'x'; 40]].concat();
    decode(&mut decoder, &large).unwrap();
    assert_eq!(decoder.table_size(), 0);
}

proptest! {
    #[test]
    fn what_is_compressed_is_read_again(text in prop::collection::vec(any::<u8>(), 0..200)) {
        let mut decoded = Vec::new();
        huffman::decode(&huffman::encode(&text), &mut decoded).unwrap();
        prop_assert_eq!(decoded, text);
    }

    #[test]
    fn our_blocks_are_read_as_they_were_written(
        fields in prop::collection::vec(("[a-z]{1,20}|content-type|grpc-status", "[ -~]{0,200}"), 0..20),
        code in 100_u16..1_000,
    ) {
        let mut map = http::HeaderMap::new();
        for (name, value) in &fields {
            map.append(http::HeaderName::from_bytes(name.as_bytes()).unwrap(), value.parse().unwrap());
        }
        let mut block = Vec::new();
        encoder::status(&mut block, http::StatusCode::from_u16(code).unwrap());
        encoder::fields(&mut block, &map);
        let mut read = Vec::new();
        let mut decoder = Decoder::new(4_096);
        decoder.decode(&block, |name, value| read.push((name.to_vec(), value.to_vec()))).unwrap();
        let status = (b":status".to_vec(), code.to_string().into_bytes());
        let mut expected = vec![status];
        expected.extend(map.iter().map(|(name, value)| (name.as_str().as_bytes().to_vec(), value.as_bytes().to_vec())));
        prop_assert_eq!(read, expected);
        prop_assert_eq!(decoder.table_size(), 0);
    }

    #[test]
    fn anything_is_read_or_refused(blocks in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..100), 1..5)) {
        let mut decoder = Decoder::new(200);
        for block in blocks {
            if decode(&mut decoder, &block).is_err() {
                break;
            }
            prop_assert!(decoder.table_size() <= 200);
        }
    }
}
