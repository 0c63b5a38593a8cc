//! What is written, against the crate `minijinja`, which is held to Jinja itself.

use std::collections::BTreeMap;

use minijinja::value::Value as Theirs;
use minijinja::{Environment, context};
use proptest::prelude::*;
use proptest::sample::select;

use super::run::{Value, write};
use super::syntax::parse;

const QUERY: &str = " what is it? ";
const DOCUMENT: &str = "one\ntwo";
const TASK: &str = "Find it";

/// The messages of a chat, of which the first has the role `system`.
const MESSAGES: [(&str, &str); 3] = [("system", TASK), ("query", QUERY), ("document", DOCUMENT)];

/// What is written here of a chat: with the first message, and without.
fn own(template: &str, instructed: bool) -> Result<String, String> {
    let messages = MESSAGES[usize::from(!instructed)..].iter();
    let messages = messages.map(|(role, content)| {
        let entries = [
            ("role", Value::from(*role)),
            ("content", Value::from(*content)),
        ];
        Value::Map(BTreeMap::from(entries.map(|(name, value)| (name.to_owned(), value))).into())
    });
    let globals = [
        ("messages", Value::List(messages.collect::<Vec<_>>().into())),
        ("bos_token", Value::from("<s>")),
        ("three", Value::Number(3)),
        ("yes", Value::Flag(true)),
        ("nothing", Value::None),
    ];
    let globals = BTreeMap::from(globals.map(|(name, value)| (name.to_owned(), value)));
    write(&parse(template)?, globals)
}

/// What both write. Theirs has no bound on bytes.
fn written(template: &str, instructed: bool) -> (Result<String, String>, Result<String, String>) {
    let mut environment = Environment::new();
    environment.set_trim_blocks(true);
    environment.set_lstrip_blocks(true);
    environment.set_fuel(Some(100_000));
    environment.set_unknown_method_callback(minijinja_contrib::pycompat::unknown_method_callback);
    let messages: Vec<Theirs> = MESSAGES[usize::from(!instructed)..]
        .iter()
        .map(|(role, content)| context!(role, content))
        .collect();
    let known = context!(messages, bos_token => "<s>", three => 3, yes => true, nothing => ());
    let theirs = environment
        .render_str(template, known)
        .map_err(|error| error.to_string());
    (own(template, instructed), theirs)
}

#[track_caller]
fn same(template: &str) {
    for instructed in [true, false] {
        let (own, theirs) = written(template, instructed);
        assert_eq!(
            own.as_ref().ok(),
            theirs.as_ref().ok(),
            "{template}\n{own:?}\n{theirs:?}"
        );
        assert!(own.is_ok(), "{template}: {own:?}");
    }
}

#[test]
fn published_kinds_of_templates_are_written_alike() {
    for template in [
        // Roles by filters, with a default.
        "{%- set task = messages | selectattr(\"role\", \"eq\", \"system\") | map(attribute=\"content\") | first | default(\"find\") -%}\n\
         <s>{{ task }}\n{{ messages | selectattr('role', 'eq', 'query') | map(attribute='content') | first }}\n",
        // A loop over messages, with white space on every side.
        "{% for message in messages %}\n    {% if message.role == 'query' %}\n<q>{{ message['content'] | trim }}</q>\n    {% elif message.role == 'document' %}\n<d>{{ message.content }}</d>\n    {% else %}\n{{ '<t>' + message.content + '</t>\\n' }}\n    {% endif %}\n{% endfor %}\nend\n",
        // A namespace that the loop changes.
        "{% set ns = namespace(seen=false, task='') %}{% for m in messages %}{% if m['role'] == 'system' and not ns.seen %}{% set ns.seen = true %}{% set ns.task = m.content %}{% endif %}{% endfor %}{{ bos_token }}{{ ns.task or 'none' }}",
        // What a loop knows, lists by their ends, slices.
        "{{ messages[0].role }} {{ messages[-1]['content'] }}{% for m in messages[::-1] %}{{ loop.index }}{{ loop.index0 }}{% if not loop.last %}, {% endif %}{{ m.role }}{% endfor %}{{ messages[1:] | length }}",
        "{% for m in messages if m.role != 'system' %}{{ loop.index }}/{{ loop.length }} {{ m.content }}{% else %}none{% endfor %}",
        "{% if messages[0]['role'] == 'system' %}{% set rest = messages[1:] %}{{ messages[0].content }}{% else %}{% set rest = messages %}{% endif %}{{ rest | length }}",
        // Strings and their methods.
        "{{ 'a' ~ three ~ \"b\" }}{{ messages[-1].content.split('\\n')[-1] }}{{ ' x '.strip() }}{{ 'abc'.startswith('ab') and 'yes' }}{{ 'abc'.replace('b', '--') }}{{ 'Ab'.lower() }}{{ 'Ab' | upper }}",
        "{{ 'x' if yes else 'y' }}{{ 'x' if nothing else 'y' }}{{ 'a' in 'cat' and 'in' }}{{ 'role' in messages[0] and 'has' }}{{ 'x' not in ['y', 'z'] and 'out' }}",
        "{{ three + 4 * 2 - 1 }}{{ 7 % three }}{{ -three }}{{ (1 + 2) * three }}{{ three >= 3 and 'ge' }}{{ three < 3 or 'no' }}",
        "{{ missing | default('d') }}{{ '' | default('d', true) }}{{ missing is defined or 'u' }}{{ nothing is none and 'n' }}{{ 'x' is string and 's' }}{{ three is not none and 'nn' }}",
        "{{ ['a', 'b'] | join('-') }}{{ ['a', 'b'] | last }}{{ 'a\\tb\\\\' }}{{ \"it's\" }}{{ 'a' 'b' }}",
        "a {#- taken -#} b {# kept #} c\n  {# alone #}\nd {{- ' e ' -}} f",
        "  {%+ if yes %} kept {%+ endif %}\n{% if yes -%}   x   {%- endif %}\n\n",
        "{% set text %}<{{ three }}>{% endset %}{{ text }}{{ text | length }}",
        "{% for i in range(3) %}{{ i }}{% endfor %}{% for i in range(1, 3) %}{{ i }}{% endfor %}{% for x in [] %}{% else %}empty{% endfor %}",
        "no tags { } {x} %}\n",
        "\n\n",
        "",
    ] {
        same(template);
    }
}

#[test]
fn what_costs_too_much_or_is_not_known_is_said() {
    let fault = |template: &str| own(template, true).err().unwrap_or_default();
    let mut others = Vec::new();
    for (template, words) in [
        (
            "{% set x = 'aaaaaaaa' %}{% set x = x ~ x %}".to_owned()
                + &"{% set x = x ~ x %}".repeat(40),
            "bytes of text",
        ),
        (
            "{% set x %}aaaaaaaa{% endset %}".to_owned()
                + &"{% set x %}{{ x }}{{ x }}{% endset %}".repeat(40),
            "bytes of text",
        ),
        (
            "{% set x = 'aaaaaaaa' %}".to_owned()
                + &"{% set x = x.replace('a', 'aaaaaaaa') %}".repeat(40),
            "steps",
        ),
        (
            "{% for a in range(9999) %}{% for b in range(9999) %}x{% endfor %}{% endfor %}".into(),
            "steps",
        ),
        ("{{ range(99999999999) | length }}".into(), "steps"),
        (
            "{% set l = range(30000) %}{% for i in range(90) %}{{ l == l }}{% endfor %}".into(),
            "steps",
        ),
        (
            "{% set x = [1] %}{% set x = [x] %}".into(),
            "a list stands in a list",
        ),
        (
            "{{ ".to_owned() + &"(".repeat(100) + "1 }}",
            "nested too deeply",
        ),
        (
            "{{ ".to_owned() + &"1 + ".repeat(100) + "1 }}",
            "nested too deeply",
        ),
        (
            "{{ ".to_owned() + &"not ".repeat(100) + "1 }}",
            "nested too deeply",
        ),
        ("{% if 1 %}".repeat(100), "nested too deeply"),
        ("{{ ".to_owned() + &"1, ".repeat(500) + " }}", "400 words"),
        ("{{ 99999999999999999999 }}".into(), "too large"),
        ("{{ 9223372036854775807 + 1 }}".into(), "too large"),
        ("{{ 5 % 0 }}".into(), "too large"),
        (
            "\n\n{% macro x() %}{% endmacro %}".into(),
            "line 3: the block macro",
        ),
        ("{{ 'a' | tojson }}".into(), "the filter tojson"),
        (
            "{{ strftime_now('%Y') }}".into(),
            "the function strftime_now",
        ),
        ("{{ 'a'.encode() }}".into(), "the method encode"),
        ("{{ 1 is divisibleby(2) }}".into(), "the test divisibleby"),
        ("{{ missing.attribute }}".into(), "not there"),
        ("{{ messages }}".into(), "a list cannot be written"),
        ("{{ 'a' + 1 }}".into(), "a text + a number"),
        ("{{ 'a".into(), "not closed"),
        ("{{ 'a }}".into(), "not closed"),
        ("{% if 1 %}".into(), "if is not ended"),
        ("{% endif %}".into(), "endif"),
        ("{{ a b }}".into(), "syntax error at b"),
        ("{{ }}".into(), "syntax error"),
        ("{{ x[1 }}".into(), "syntax error"),
        ("{{ \u{1f600} }}".into(), "not known"),
        ("{% set a.b = 1 %}".into(), "no namespace"),
        ("{{ raise_exception('no ' ~ 'pairs') }}".into(), "no pairs"),
        ("{{ [1, 2][::0] }}".into(), "step 0"),
    ] {
        let found = fault(&template);
        if !found.contains(words) {
            others.push(format!("{template:.80}: {found}, not {words}"));
        }
    }
    assert!(others.is_empty(), "{others:#?}");
}

/// Parts of templates, of which any may follow any.
const PARTS: &[&str] = &[
    "text ",
    "\n",
    "  ",
    "{{ three }}",
    "{{- bos_token }}",
    "{{ bos_token -}}",
    "{% if yes %}",
    "{%- if nothing -%}",
    "{% elif three == 3 %}",
    "{% else %}",
    "{% endif %}",
    "{%- endif %}",
    "{% for m in messages %}",
    "{% endfor %}",
    "{% endfor -%}",
    "{{ m.content }}",
    "{{ m['content'] | trim }}",
    "{{ loop.index }}",
    "{% set x = three + 1 %}",
    "{{ x }}",
    "{% set x = 'y' ~ x %}",
    "{# c #}",
    "{#- c -#}",
    "{{ messages[0].role }}",
    "{{ messages[-1].content | length }}",
    "{%+ set z = 1 %}",
    "\t",
    "{{ 'a' if m else 'b' }}",
];

proptest! {
    #[test]
    fn any_row_of_parts_is_written_alike(parts in prop::collection::vec(select(PARTS), 0..14), instructed: bool) {
        let template: String = parts.concat();
        let (own, theirs) = written(&template, instructed);
        // They differ in what is asked of what is not there, and a loop's name may be a text's.
        if let (Ok(own), Ok(theirs)) = (&own, &theirs) {
            prop_assert_eq!(own, theirs, "{}", template);
        }
        // Whatever they parse and write, is parsed here as well.
        if theirs.is_ok() {
            prop_assert!(own.is_ok(), "{}: {:?}", template, own);
        }
    }

    #[test]
    fn no_template_makes_it_panic(template in "[{}%#\\-+'\"a-c \n|.:=~()\\[\\]0-9]{0,60}") {
        let _ = own(&template, true);
    }

    #[test]
    fn no_tag_makes_it_panic(inside in "[a-c'\" |.:=~()\\[\\]0-9+*%-]{0,30}", is_output: bool) {
        let template = match is_output {
            true => format!("{{{{ {inside} }}}}"),
            false => format!("{{% set x = {inside} %}}{{{{ x }}}}"),
        };
        let _ = own(&template, true);
    }
}
