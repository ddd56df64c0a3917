use bson::rawdoc;
use proptest::prelude::*;

use super::reply::{Form, message, reply};
use super::*;

/// A request as drivers send it.
fn request(id: i32, flags: u32, document: &bson::RawDocument) -> Vec<u8> {
    let body = [&flags.to_le_bytes()[..], &[0], document.as_bytes()].concat();
    message(OpCode::Message, id, 0, &body)
}

fn compressed(request: &[u8], compressor: Compressor) -> Vec<u8> {
    let mut body = OpCode::Message.number().to_le_bytes().to_vec();
    body.extend(i32::try_from(request.len() - HEADER).unwrap().to_le_bytes());
    body.push(compressor.id());
    body.extend(compressor.compress(&request[HEADER..]).unwrap());
    message(OpCode::Compressed, 7, 0, &body)
}

fn header_of(message: &[u8]) -> Header {
    Header::parse(message.first_chunk().unwrap()).unwrap()
}

fn decompress(compressor: Compressor, bytes: &[u8]) -> Vec<u8> {
    let mut plain = Vec::new();
    match compressor {
        Compressor::Noop => plain = bytes.to_vec(),
        Compressor::Snappy => plain = snap::raw::Decoder::new().decompress_vec(bytes).unwrap(),
        Compressor::Zlib => {
            io::Read::read_to_end(&mut flate2::read::ZlibDecoder::new(bytes), &mut plain).unwrap();
        }
        Compressor::Zstd => plain = zstd::decode_all(bytes).unwrap(),
    }
    plain
}

#[test]
fn headers_are_checked() {
    let header = |length: i32, number: i32| {
        let bytes = [length, 1, 0, number].map(i32::to_le_bytes).concat();
        Header::parse(bytes.first_chunk().unwrap())
    };
    assert_eq!(header(48_000_000, 2013).unwrap().length, MAX_MESSAGE);
    assert_eq!(header(48_000_001, 2013), Err(Malformed::Length(48_000_001)));
    for (length, number) in [(-1, 2013), (0, 2013), (16, 2013), (19, 2013), (24, 2012), (28, 2004), (35, 1)] {
        assert_eq!(header(length, number), Err(Malformed::Length(length)));
    }
    assert_eq!(header(100, 2002), Err(Malformed::OpCode(2002)));
    // A web browser.
    assert!(Header::parse(b"GET / HTTP/1.1\r\n").is_err());
}

#[test]
fn commands_are_found_in_either_form() {
    let ping = request(1, 0, &rawdoc! { "ping": 1, "$db": "admin" });
    let command = Command::find(&header_of(&ping), &ping).unwrap();
    assert_eq!((command.name, command.is_handshake()), ("ping", false));
    assert_eq!(command.body.unwrap().get_str("$db").unwrap(), "admin");

    let insert = rawdoc! { "insert": "things", "$db": "test" };
    let sequence = [&[1, 14, 0, 0, 0][..], b"documents\0"].concat();
    let body = [&[0; 4][..], &sequence, &[0], insert.as_bytes()].concat();
    let insert = message(OpCode::Message, 1, 0, &body);
    assert_eq!(Command::find(&header_of(&insert), &insert).unwrap().name, "insert");

    for document in
        [rawdoc! { "isMaster": 1 }, rawdoc! { "$query": { "ismaster": 1 }, "$readPreference": {} }]
    {
        let body = [&[4, 0, 0, 0][..], b"admin.$cmd\0", &[0; 4], &[255; 4], document.as_bytes()].concat();
        let hello = message(OpCode::Query, 1, 0, &body);
        let command = Command::find(&header_of(&hello), &hello).unwrap();
        assert!(command.is_hello() && command.is_handshake() && command.body.is_some(), "{command:?}");
    }
}

#[test]
fn a_command_that_is_only_begun_has_a_name_but_no_body() {
    let find = request(1, 0, &rawdoc! { "find": "things", "filter": { "_id": 1 } });
    let command = Command::find(&header_of(&find), &find[..40]).unwrap();
    assert_eq!((command.name, command.body), ("find", None));
    assert!(Command::find(&header_of(&find), &find[..28]).is_none());
}

#[test]
fn replies_have_the_form_of_their_request() {
    let answer = rawdoc! { "ok": 0.0, "code": 462 };
    let plain = reply(Form::Message, 5, 7, &answer).unwrap();
    let header = header_of(&plain);
    assert_eq!((header.length, header.request_id, header.response_to), (plain.len(), 5, 7));
    assert_eq!(plain[HEADER..], [&[0; 5][..], answer.as_bytes()].concat());
    let old = reply(Form::Reply, 5, 7, &answer).unwrap();
    assert_eq!((header_of(&old).op_code, &old[HEADER + 20..]), (OpCode::Reply, answer.as_bytes()));
    for compressor in Compressor::ALL {
        let asked = compressed(&request(1, 0, &rawdoc! { "ping": 1 }), compressor);
        let form = Form::of_request(&header_of(&asked), &asked).unwrap();
        let reply = reply(form, 5, 7, &answer).unwrap();
        assert_eq!(header_of(&reply).length, reply.len());
        assert_eq!(reply[HEADER..HEADER + 4], OpCode::Message.number().to_le_bytes());
        assert_eq!(int(&reply, HEADER + 4), i32::try_from(plain.len() - HEADER).ok());
        assert_eq!(decompress(compressor, &reply[HEADER + 9..]), plain[HEADER..], "{compressor:?}");
    }
}

proptest! {
    #[test]
    fn headers_round_trip(
        length in 36..=MAX_MESSAGE, request_id in any::<i32>(), response_to in any::<i32>(), kind in 0_usize..4,
    ) {
        let op_code = [OpCode::Reply, OpCode::Query, OpCode::Compressed, OpCode::Message][kind];
        let header = Header { length, request_id, response_to, op_code };
        prop_assert_eq!(Header::parse(&header.to_bytes()), Ok(header));
    }

    #[test]
    fn nothing_panics(
        bytes in prop::collection::vec(any::<u8>(), 0..300), op in 0_usize..4, id in 0_u8..5, cut in 0_usize..300,
    ) {
        Frames::new().walk(&bytes, |_| {}).ok();
        let op_code = [OpCode::Reply, OpCode::Query, OpCode::Compressed, OpCode::Message][op];
        let mut message = message(op_code, 1, 0, &bytes);
        if op_code == OpCode::Compressed && message.len() > HEADER + 8 {
            message[HEADER..HEADER + 4].copy_from_slice(&OpCode::Message.number().to_le_bytes());
            message[HEADER + 8] = id;
        }
        let header = Header { length: message.len(), request_id: 1, response_to: 0, op_code };
        let beginning = &message[..cut.min(message.len())];
        request::flags_of(&header, beginning);
        Form::of_request(&header, beginning);
        if let Some(command) = Command::find(&header, beginning) {
            command.is_handshake();
        }
    }

    /// Compressed bytes with mistakes in them.
    #[test]
    fn no_damage_panics(at in 0_usize..200, to in any::<u8>(), words in prop::collection::vec("[ab]{0,9}", 1..30)) {
        let plain = words.concat().into_bytes();
        for compressor in Compressor::ALL {
            let mut bytes = compressor.compress(&plain).unwrap();
            let at = at % bytes.len().max(1);
            if let Some(byte) = bytes.get_mut(at) {
                *byte = to;
            }
            compressor.peek(&bytes);
        }
    }

    #[test]
    fn frames_are_the_same_however_they_are_cut(
        sizes in prop::collection::vec(0_usize..100, 1..20), cuts in prop::collection::vec(1_usize..60, 1..60),
    ) {
        let messages: Vec<_> = (0..).zip(&sizes)
            .map(|(id, &size)| message(OpCode::Message, id, -id, &vec![0xff; 4 + size]))
            .collect();
        let expected: Vec<_> = messages.iter().map(|message| header_of(message)).collect();
        let stream = messages.concat();
        let (mut frames, mut seen, mut rest) = (Frames::new(), Vec::new(), &stream[..]);
        for cut in cuts.iter().cycle() {
            let (part, others) = rest.split_at((*cut).min(rest.len()));
            frames.walk(part, |header| seen.push(*header)).unwrap();
            rest = others;
            let passed: usize = seen.iter().map(|header| header.length).sum();
            prop_assert_eq!(frames.is_between(), passed == stream.len() - rest.len());
            if rest.is_empty() {
                break;
            }
        }
        prop_assert_eq!(seen, expected);
    }

    /// And a reader that is given the same pieces hands on the same messages, or drops them, wherever they are cut.
    #[test]
    fn a_reader_loses_nothing(
        sizes in prop::collection::vec((0_usize..40_000, any::<bool>(), 0_usize..50_000), 1..8),
        cuts in prop::collection::vec(1_usize..30_000, 1..60),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let messages: Vec<_> = (1..).zip(&sizes)
            .map(|(id, (size, ..))| {
                let body: Vec<u8> = (0..4 + size).map(|i| (i % 251).try_into().unwrap()).collect();
                message(OpCode::Message, id, 0, &body)
            })
            .collect();
        let stream = messages.concat();
        let mut source: Box<dyn tokio::io::AsyncRead + Unpin> = Box::new(&b""[..]);
        let (mut rest, mut parts) = (&stream[..], Vec::new());
        for cut in cuts.iter().cycle() {
            let (part, others) = rest.split_at((*cut).min(rest.len()));
            parts.push(part.to_vec());
            rest = others;
            if rest.is_empty() {
                break;
            }
        }
        for part in parts {
            source = Box::new(tokio::io::AsyncReadExt::chain(source, std::io::Cursor::new(part)));
        }
        runtime.block_on(async {
            let mut reader = MessageReader::new(source);
            for (message, (_, forwarded, wanted)) in messages.iter().zip(&sizes) {
                let header = reader.header().await.unwrap().unwrap();
                assert_eq!(header, header_of(message));
                let beginning = reader.beginning(&header, *wanted).await.unwrap();
                assert_eq!(beginning, &message[..message.len().min(*wanted)]);
                if *forwarded {
                    let mut passed = Vec::new();
                    reader.forward(&header, &mut passed).await.unwrap();
                    assert_eq!(&passed, message);
                } else {
                    reader.skip(&header).await.unwrap();
                }
            }
            assert_eq!(reader.header().await.unwrap(), None);
        });
    }

    #[test]
    fn flags_are_found_under_any_compression(
        flags in any::<u32>(), text in ".{0,40}", times in 0_usize..6000,
    ) {
        let plain = request(1, flags, &rawdoc! { "insert": "x", "text": text.repeat(times) });
        prop_assert_eq!(request::flags_of(&header_of(&plain), &plain[..20]), Some(flags));
        for compressor in Compressor::ALL {
            let message = compressed(&plain, compressor);
            let beginning = &message[..message.len().min(request::FLAGS_PREFIX)];
            prop_assert_eq!(request::flags_of(&header_of(&message), beginning), Some(flags), "{:?}", compressor);
        }
    }
}
