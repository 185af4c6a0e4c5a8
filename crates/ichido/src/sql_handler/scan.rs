//! Splits SQL text into the few tokens that a handler's check needs: words, parameters, ends of
//! statements. It knows quotes and comments of both engines; it must never look inside them.

/// A piece of SQL.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Token<'a> {
    /// White space or a comment.
    Blank,
    /// An identifier or keyword.
    Word(&'a str),
    /// `:name`.
    Param(&'a str),
    /// `$1` or `?`.
    Positional(&'a str),
    /// Anything else, quotes included.
    Other(&'a str),
    /// `;`.
    End,
}

type Failure = (usize, String);

/// The tokens of `text`, each with its line from 1.
pub(super) fn tokens(text: &str) -> Result<Vec<(usize, Token<'_>)>, Failure> {
    let mut all = Vec::new();
    let (mut at, mut line) = (0, 1);
    while at < text.len() {
        let rest = &text[at..];
        let (token, len) = next(rest).map_err(|problem| (line, problem))?;
        all.push((line, token));
        line += rest[..len].matches('\n').count();
        at += len;
    }
    Ok(all)
}

fn next(rest: &str) -> Result<(Token<'_>, usize), String> {
    let first = rest.chars().next().unwrap_or(' ');
    let take = |len: usize| &rest[..len];
    if first.is_whitespace() {
        return Ok((Token::Blank, span(rest, char::is_whitespace)));
    }
    if rest.starts_with("--") {
        return Ok((Token::Blank, span(rest, |c| c != '\n')));
    }
    if rest.starts_with("/*") {
        return Ok((Token::Blank, block_comment(rest)?));
    }
    if (first == 'e' || first == 'E') && rest[1..].starts_with('\'') {
        let len = 1 + quoted(&rest[1..], '\'', true)?;
        return Ok((Token::Other(take(len)), len));
    }
    if is_word(first) && !first.is_ascii_digit() {
        let len = span(rest, |c| is_word(c) || c == '$');
        return Ok((Token::Word(take(len)), len));
    }
    let len = match first {
        ';' => return Ok((Token::End, 1)),
        '\'' | '"' | '`' => quoted(rest, first, false)?,
        '$' => return dollar(rest),
        '?' if span(&rest[1..], |c| c.is_ascii_digit() || c.is_whitespace() || c == ',') > 0
            && !rest[1..].trim_start().starts_with('\'') =>
        {
            return Ok((Token::Positional("?"), 1));
        }
        ':' if rest.starts_with("::") || rest.starts_with(":=") => 2,
        ':' => {
            let name = span(&rest[1..], is_word);
            if name > 0 && !rest[1..].starts_with(|c: char| c.is_ascii_digit()) {
                return Ok((Token::Param(&rest[1..=name]), 1 + name));
            }
            1
        }
        c if c.is_ascii_digit() => span(rest, |c| is_word(c) || c == '.'),
        c => c.len_utf8(),
    };
    Ok((Token::Other(take(len)), len))
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Bytes of the longest prefix whose characters all are `wanted`.
fn span(text: &str, wanted: impl Fn(char) -> bool) -> usize {
    text.find(|c| !wanted(c)).unwrap_or(text.len())
}

fn quoted(rest: &str, quote: char, backslash: bool) -> Result<usize, String> {
    let mut chars = rest.char_indices().skip(1).peekable();
    while let Some((at, c)) = chars.next() {
        if backslash && c == '\\' {
            chars.next();
        } else if c == quote {
            match chars.peek() {
                Some((_, again)) if *again == quote => {
                    chars.next();
                }
                _ => return Ok(at + 1),
            }
        }
    }
    Err(format!("a {quote} that is never closed"))
}

/// `$1` is a positional parameter, `$tag$ ... $tag$` a quote.
fn dollar(rest: &str) -> Result<(Token<'_>, usize), String> {
    let digits = span(&rest[1..], |c| c.is_ascii_digit());
    if digits > 0 {
        return Ok((Token::Positional(&rest[..=digits]), 1 + digits));
    }
    let tag = span(&rest[1..], is_word);
    if !rest[1 + tag..].starts_with('$') {
        return Ok((Token::Other("$"), 1));
    }
    let open = tag + 2;
    match rest[open..].find(&rest[..open]) {
        Some(close) => {
            let len = open + close + open;
            Ok((Token::Other(&rest[..len]), len))
        }
        None => Err(format!("a {} that is never closed", &rest[..open])),
    }
}

/// PostgreSQL nests block comments; for SQLite the outermost end is the end as well.
fn block_comment(rest: &str) -> Result<usize, String> {
    let (mut depth, mut at) = (0, 0);
    while at < rest.len() {
        let here = &rest.as_bytes()[at..];
        if here.starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if here.starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return Ok(at);
            }
        } else {
            at += 1;
        }
    }
    Err("a /* that is never closed".into())
}
