use super::*;

#[test]
fn a_case_is_read_as_it_is_written() {
    let faults = |numbers: &[usize]| Some(numbers.iter().copied().collect());
    let cases = [
        ("42", Case::whole(42)),
        ("42/", Case { faults: faults(&[]), ..Case::whole(42) }),
        ("42/3,17", Case { faults: faults(&[3, 17]), ..Case::whole(42) }),
        ("42/3/9500", Case { faults: faults(&[3]), chaos: Some(Duration::from_millis(9_500)), ..Case::whole(42) }),
    ];
    for (text, case) in cases {
        assert_eq!((text.parse(), case.to_string()), (Ok(case), text.to_owned()));
    }
    for text in ["", "x", "42/x", "42/1/x", "42/1/2/3", "-1"] {
        let told = text.parse::<Case>().unwrap_err();
        assert!(told.contains("expected a seed"), "{told}");
    }
}
