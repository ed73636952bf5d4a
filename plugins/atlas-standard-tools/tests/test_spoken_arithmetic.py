from __future__ import annotations

import time

import pytest
from atlas_standard_tools._arithmetic import evaluate
from atlas_standard_tools._spoken_arithmetic import read_expression
from hypothesis import given, settings
from hypothesis import strategies as st

READ = [
    ("What is the square root of 144 multiplied by 5?", "sqrt(144) * 5", 60),
    ("what's 2 plus 2", "2 + 2", 4),
    ("Calculate 12 × 7", "12 * 7", 84),
    ("12 times seven", "12 * 7", 84),
    ("Hey, can you please tell me what is 3 + 4?", "3 + 4", 7),
    ("I want to know what 3 plus 4 is", None, None),
    ("how much is 100 minus 37.5, please?", "100 - 37.5", 62.5),
    ("What is 2 + 3 * 4?", "2 + 3 * 4", 14),
    ("What is (2 + 3) * 4?", "(2 + 3) * 4", 20),
    ("10 - (4 - 1)", "10 - (4 - 1)", 7),
    ("10 / (4 / 2)", "10 / (4 / 2)", 5),
    ("what is 10 minus 4 minus 1", "10 - 4 - 1", 5),
    ("2 + 2 =", "2 + 2", 4),
    ("2+2 equals what?", "2 + 2", 4),
    ("what does 2 + 2 equal?", "2 + 2", 4),
    ("3 + 4 is what", "3 + 4", 7),
    ("what is 3 divided by 4", "3 / 4", 0.75),
    ("100 over 4", "100 / 4", 25),
    ("12 ÷ 4", "12 / 4", 3),
    ("what is 3/4?", "3 / 4", 0.75),
    ("what is 10-3?", "10 - 3", 7),
    ("what is 6x7?", "6 * 7", 42),
    ("2 x 3", "2 * 3", 6),
    ("1,000 + 2,500", "1000 + 2500", 3500),
    ("1e5 * 2", "1e5 * 2", 200000),
    ("0.1 + .2", "0.1 + .2", 0.3),
    ("minus three plus five", "-3 + 5", 2),
    ("negative 4 times 3", "-4 * 3", -12),
    ("5 times -3", "5 * -3", -15),
    ("twenty-five times four", "25 * 4", 100),
    ("two hundred and five plus three", "205 + 3", 208),
    ("what is a hundred minus one", "100 - 1", 99),
    ("three point five times two", "3.5 * 2", 7),
    ("two and a half times four", "2.5 * 4", 10),
    ("1.5 million divided by 3", "1500000 / 3", 500000),
    ("one thousand two hundred and thirty four minus 34", "1234 - 34", 1200),
    ("What is 15% of 80?", "15 / 100 * 80", 12),
    ("twenty percent of 50", "20 / 100 * 50", 10),
    ("20 percent of 50, plus 10", "20 / 100 * 50 + 10", 20),
    ("20 percent of 50 times 10", "20 / 100 * 50 * 10", 100),
    ("200 divided by 10% of 50", "200 / (10 / 100 * 50)", 40),
    ("what percent of 80 is 20?", "20 / 80 * 100", 25),
    ("what percentage is 20 of 80", "20 / 80 * 100", 25),
    ("20 is what percent of 80?", "20 / 80 * 100", 25),
    ("20 as a percentage of 80", "20 / 80 * 100", 25),
    ("20% off 50", "50 * (1 - 20 / 100)", 40),
    ("20% more than 50", "50 * (1 + 20 / 100)", 60),
    ("increase 50 by 20%", "50 * (1 + 20 / 100)", 60),
    ("reduce 80 by 25 percent", "80 * (1 - 25 / 100)", 60),
    ("80 decreased by 25%", "80 * (1 - 25 / 100)", 60),
    ("percentage increase from 50 to 60", "(60 - 50) / 50 * 100", 20),
    ("5 more than 3", "3 + 5", 8),
    ("5 less than 10", "10 - 5", 5),
    ("3 subtracted from 10", "10 - 3", 7),
    ("3 added to 4", "4 + 3", 7),
    ("10 increased by 5", "10 + 5", 15),
    ("half of 10, plus 2", "1 / 2 * 10 + 2", 7),
    ("half of (10 + 2)", "1 / 2 * (10 + 2)", 6),
    ("half of (10) plus 2", "1 / 2 * (10) + 2", 7),
    ("one-half of 8", "1 / 2 * 8", 4),
    ("two-thirds of 90", "2 / 3 * 90", 60),
    ("one half of 8", "1 / 2 * 8", 4),
    ("three quarters of 80", "3 / 4 * 80", 60),
    ("two thirds of 90", "2 / 3 * 90", 60),
    ("1/3 of 90", "1 / 3 * 90", 30),
    ("a quarter of 20", "1 / 4 * 20", 5),
    ("double 7", "2 * 7", 14),
    ("twice 5, plus 1", "2 * 5 + 1", 11),
    ("twice 5 times 3", "2 * 5 * 3", 30),
    ("triple 4", "3 * 4", 12),
    ("10 divided by half of 4", "10 / (1 / 2 * 4)", 5),
    ("12 squared", "12 ^ 2", 144),
    ("2 plus 3 squared", "2 + 3 ^ 2", 11),
    ("4 cubed", "4 ^ 3", 64),
    ("the square of 5", "5 ^ 2", 25),
    ("the cube of 3 times 2", "3 ^ 3 * 2", 54),
    ("square 12", "12 ^ 2", 144),
    ("2 to the power of 10", "2 ^ 10", 1024),
    ("2 raised to the 10th power", "2 ^ 10", 1024),
    ("2 to the third power", "2 ^ 3", 8),
    ("raise 2 to the power of 8", "2 ^ 8", 256),
    ("2 ** 10", "2 ^ 10", 1024),
    ("2 ^ 3 ^ 2", "2 ^ 3 ^ 2", 512),
    ("2 ^ -1", "2 ^ -1", 0.5),
    ("cube root of 27", "cbrt(27)", 3),
    ("fourth root of 16", "16 ^ (1 / 4)", 2),
    ("the 5th root of 32", "32 ^ (1 / 5)", 2),
    ("√144 * 5", "sqrt(144) * 5", 60),
    ("sqrt(16) + 3", "sqrt(16) + 3", 7),
    ("max(1, 2) + 3", "max(1, 2) + 3", 5),
    ("25 plus the square root of 144", "25 + sqrt(144)", 37),
    ("the square root of 144, plus 25", "sqrt(144) + 25", 37),
    ("square root of the sum of 9 and 16", "sqrt(9 + 16)", 5),
    ("square root of (9 + 16)", "sqrt(9 + 16)", 5),
    ("three times square root of 16", "3 * sqrt(16)", 12),
    ("reciprocal of 4", "1 / 4", 0.25),
    ("absolute value of -5", "abs(-5)", 5),
    ("factorial of 5", "factorial(5)", 120),
    ("5 factorial", "factorial(5)", 120),
    ("What is 5!", "factorial(5)", 120),
    ("sine of 30 degrees", "sin(radians(30))", 0.5),
    ("cosine of 0 radians", "cos(0)", 1),
    ("log base 2 of 8", "log2(8)", 3),
    ("log10 of 1000", "log10(1000)", 3),
    ("natural log of 1", "ln(1)", 0),
    ("17 mod 5", "17 % 5", 2),
    ("17 % 5", "17 % 5", 2),
    ("remainder when 17 is divided by 5", "17 % 5", 2),
    ("what is the remainder of 17 divided by 5", "17 % 5", 2),
    ("the sum of 1, 2 and 3", "1 + 2 + 3", 6),
    ("sum of 1,000 and 2,000", "1000 + 2000", 3000),
    ("2 times the sum of 3 and 4", "2 * (3 + 4)", 14),
    ("product of 3 and 4", "3 * 4", 12),
    ("quotient of 20 and 5", "20 / 5", 4),
    ("difference between 4 and 10", "10 - 4", 6),
    ("difference of 10 and 4", "10 - 4", 6),
    ("average of 10, 20, and 30", "mean(10, 20, 30)", 20),
    ("average of 10,20,30", "mean(10, 20, 30)", 20),
    ("median of 1, 5 and 3", "median(1, 5, 3)", 3),
    ("smallest of 4, 2 and 9", "min(4, 2, 9)", 2),
    ("largest number among 4, 2 and 9", "max(4, 2, 9)", 9),
    ("greatest common divisor of 12 and 18", "gcd(12, 18)", 6),
    ("least common multiple of 4 and 6", "lcm(4, 6)", 12),
    ("add 2 and 3", "2 + 3", 5),
    ("add 2, 3 and 4", "2 + 3 + 4", 9),
    ("add 5 to 20", "5 + 20", 25),
    ("subtract 5 from 20", "20 - 5", 15),
    ("take 5 away from 20", "20 - 5", 15),
    ("multiply 3 by 4", "3 * 4", 12),
    ("divide 20 by 4", "20 / 4", 5),
    ("add 2 and 3, then multiply the result by 4", "(2 + 3) * 4", 20),
    ("add 2 and 3 and multiply by 4", "(2 + 3) * 4", 20),
    ("multiply 3 by 4 and then subtract 2", "3 * 4 - 2", 10),
    ("divide 20 by 4, then square it", "(20 / 4) ^ 2", 25),
    ("add 2 and 3 then divide by 5", "(2 + 3) / 5", 1),
    ("subtract 5 from 20, then increase it by 10%", "(20 - 5) * (1 + 10 / 100)", 16.5),
    ("pi times 2", "pi * 2", 6.28318530717959),
    # functions: a comma in their brackets parts numbers
    ("max(5,100)", "max(5, 100)", 100),
    ("gcd(12,180)", "gcd(12, 180)", 12),
    ("mean(100,200,300)", "mean(100, 200, 300)", 200),
    ("median(1,100,900)", "median(1, 100, 900)", 100),
    ("max(-5,100)", "max(-5, 100)", 100),
    ("max(5, -100)", "max(5, -100)", 5),
    ("max(5,100.5)", "max(5, 100.5)", 100.5),
    ("max(.5,1e3)", "max(.5, 1e3)", 1000),
    ("sqrt(16)+max(2,300)", "sqrt(16) + max(2, 300)", 304),
    ("2*max(5,100)", "2 * max(5, 100)", 200),
    ("max(min(5,100),50)", "max(min(5, 100), 50)", 50),
    ("-max(3,200)", "-max(3, 200)", -200),
    ("1,000 + max(5,100)", "1000 + max(5, 100)", 1100),
    ("half of (1,000 + 500)", "1 / 2 * (1000 + 500)", 750),
    ("pow(2,10)", "pow(2, 10)", 1024),
    ("sin(30 degrees)", "sin(radians(30))", 0.5),
    ("sin(pi / 6)", "sin(pi / 6)", 0.5),
    ("cos(0)", "cos(0)", 1),
    # powers in words, lists with signs
    ("2 to the power of 3, plus 1", "2 ^ 3 + 1", 9),
    ("2 to the third power plus 1", "2 ^ 3 + 1", 9),
    ("sum of 3 squared and 4", "3 ^ 2 + 4", 13),
    ("sum of 3 squared and 4 squared", "3 ^ 2 + 4 ^ 2", 25),
    ("average of 4, 8, -2", "mean(4, 8, -2)", 10 / 3),
    ("sum of 5 and minus 3", "5 + -3", 2),
    # rounding
    ("round 1.41 to 1 decimal", "round(1.41, 1)", 1.4),
    ("round(1.41, 1)", "round(1.41, 1)", 1.4),
    ("round 3.7", "round(3.7)", 4),
    ("round off 10 / 3 to two decimal places", "round(10 / 3, 2)", 3.33),
    ("round 3.7 to the nearest integer", "round(3.7)", 4),
    ("round 1234 to the nearest hundred", "round(1234 / 100) * 100", 1200),
    ("round 17 to the nearest 5", "round(17 / 5) * 5", 15),
    ("2.345 rounded to the nearest hundredth", "round(2.345, 2)", 2.35),
    ("what is 10/3 rounded to 2 decimals?", "round(10 / 3, 2)", 3.33),
    ("1.26 + 2.44, rounded to 1 decimal", "round(1.26 + 2.44, 1)", 3.7),
    ("divide 10 by 3 and round it to 2 decimals", "round(10 / 3, 2)", 3.33),
    # signs that tie, and those that don't
    ("what is 1990 - 2000", "1990 - 2000", -10),
    ("1990 - 2000 =", "1990 - 2000", -10),
    ("2000 - 1990", "2000 - 1990", 10),
    ("7 - eleven", "7 - 11", -4),
    ("what is 2-pi", "2 - pi", -1.14159265358979),
]
READ = [row for row in READ if row[1] is not None]


@pytest.mark.parametrize(("question", "expression", "value"), READ, ids=[q for q, _, _ in READ])
def test_questions_of_arithmetic_are_read(question: str, expression: str, value: float) -> None:
    """Words and signs become the expression a person would type, and it has the right value."""
    assert read_expression(question) == expression
    assert evaluate(expression) == pytest.approx(value, rel=1e-12)


LEFT = [
    # two readings
    "What is the square root of 144 plus 25?",
    "25 plus the square root of 9 plus 16",
    "half of the square root of 9 plus 16",
    "square root of 16 times 9 plus 1",
    "half of 4 squared",
    "cube root of 2 squared",
    "What is -5 squared?",
    "minus five squared",
    "sum of 2 and 3 times 4",
    "the product of 3 and 4 plus 2",
    "20% of the sum of 2 and 3 plus 4",
    "difference of 4 and 10",
    "sum of two hundred and five and six",
    "average of 100,200,300",
    "50 plus 20%",
    "add 20% to 50",
    "200 - 10%",
    "sine of 30",
    "log of 100",
    "2 + 2!",
    "1,5 + 2",
    "square root of 9, times 4",
    "half of 10 plus 4",
    "a quarter of 80 minus 1",
    "1/3 of 90 + 3",
    "twice 3 plus 4",
    "double 7 minus 1",
    "20% of 50 plus 10",
    "100 divided by half of 10 plus 5",
    "2 to the power of 3 plus 1",
    "2 raised to 3 minus 1",
    "sum of 3 and 4 squared",
    "average of 2, 3 and 4 cubed",
    "difference between 10 and 3 squared",
    "add 3 and 4 squared",
    "add 5 to 3 squared",
    "multiply 3 by 4 squared",
    "divide 100 by 5 squared",
    "5 more than 3 squared",
    "increase 50 by 3 squared",
    "the product of 3 and 4, minus 5",
    "average of 4 and 8, - 2",
    "1.26 + 2.44 rounded to 1 decimal",
    "round 1234 to 2 significant figures",
    "round 2.7 up",
    "sin(30)",
    "tan(45)",
    # commas with two meanings
    "max(1,000)",
    "max(1,500, 3)",
    "max(2,1,000)",
    "sqrt(1,444)",
    "round(1,250)",
    "round(1,234.567, 1)",
    "mean((100,200,300))",
    "(5,100) * 2",
    "pow(2,3,4)",
    "the sum of 100,200 and 300",
    "average of 1,100,900",
    "mean of 1,100 and 900",
    "add 100,200 and 300",
    "largest of 5,100",
    "average of 1,5 and 2,5",
    "sum of 10,20 and 30",
    "max(1,5, 2,5)",
    "round(1,6)",
    "5 +- 3",
    "5 +/- 3",
    "5 ± 3",
    # dates, versions, numbers that name things
    "2024-02-29",
    "what is 2024-02-29",
    "what is 29/02/2024",
    "03/04/2024",
    "2024-02",
    "what is 24/7",
    "is it open 24/7?",
    "9/11",
    "what is 9/11",
    "10-4",
    "50/50",
    "1999-2005",
    "1990 - 2000",
    "1990 – 2000",
    "7-eleven",
    "what is 7-eleven",
    "7/eleven",
    "seven-11",
    "ten-4",
    "nine/11",
    "fifty/fifty",
    "one-way",
    "10-half of 4",
    "ten-4",
    "what is 1999-2005",
    "10-3",
    "5/2",
    "555-1234",
    "what is 555-1234",
    "call 1-800-555-1234",
    "+1 555 123 4567",
    "ISBN 978-3-16-148410-0",
    "192.168.1.1",
    "what is 192.168.1.1 + 1",
    "10:30 - 9:30",
    "route 66",
    "#123 + 1",
    "007 + 1",
    "A12 + B3",
    "python 3.11",
    "3.11.7 - 3.10",
    "1920x1080",
    "what is 1920x1080",
    "2x4",
    "what is 4x4",
    "https://example.com/2+2",
    "nineteen eighty four minus 4",
    "one two three plus 4",
    "twenty twenty",
    # algebra, code and comparisons
    "x + 2 = 5",
    "solve x + 2 = 5",
    "what is 2x",
    "2x + 3",
    "is 2 + 2 = 5?",
    "is 5 more than 3",
    "2 + 2 = 4",
    "f(2) + 1",
    "__import__('os')",
    "[1, 2] + 3",
    "0x10 + 1",
    # units, money, things
    "5 km + 3 km",
    "$5 + $3",
    "5 dollars plus 3 dollars",
    "what is 7 times 8 in miles",
    "If I have 3 apples and eat 2, how many are left?",
    "5k + 3",
    "what is 5 in binary",
    # no work to do, or not enough to do it
    "what is 42",
    "42",
    "what is (5)?",
    "what is -5?",
    "pi",
    "",
    "   ",
    "?",
    "2 +",
    "(2 + 3",
    "2 + 3)",
    "square root of",
    "add 5",
    "add 5 to",
    "5 and 3",
    "sum of 5",
    "multiply 3",
    "subtract 5",
    "divide 20 into 4",
    "15% 80",
    "17% 5",
    "then add 5",
    "hello",
    "how are you?",
    "how many days until 5",
    "two plus",
    "three hundred million thousand plus 1",
    "5 percent",
    "the difference between 3, 4 and 5",
    "square root of the difference between the sum of 1 and 2 and 3",
    "remainder when 17 is",
    "2 to the power",
    "point plus 2",
    "zero point plus 2",
]


@pytest.mark.parametrize("question", LEFT, ids=[repr(q) for q in LEFT])
def test_other_questions_are_left_alone(question: str) -> None:
    """What has two readings, or only looks like arithmetic, is not read at all."""
    assert read_expression(question) is None


@given(st.integers(0, 10**15 - 1))
@settings(max_examples=300, deadline=None)
def test_numbers_in_words_are_the_numbers(number: int) -> None:
    """Each number written out in words reads as itself."""
    expression = read_expression(f"{_spell(number)} plus 1")
    assert expression == f"{number} + 1"


_ONES = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen"
).split()
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()


def _spell(n: int) -> str:
    if n < 20:
        return _ONES[n]
    if n < 100:
        return _TENS[n // 10 - 2] + (f"-{_ONES[n % 10]}" if n % 10 else "")
    if n < 1000:
        return f"{_ONES[n // 100]} hundred" + (f" and {_spell(n % 100)}" if n % 100 else "")
    for size, name in ((10**12, "trillion"), (10**9, "billion"), (10**6, "million"), (1000, "thousand")):
        if n >= size:
            rest = n % size
            return f"{_spell(n // size)} {name}" + (f" {_spell(rest)}" if rest else "")
    raise AssertionError


_WORDS = st.sampled_from(
    "what is the 2 3 five hundred plus minus times divided by of square root half percent % and , then add ( ) sum "
    "average to power squared ! 1/2 third twice it -".split()
)


@given(st.lists(_WORDS, max_size=14))
@settings(max_examples=1000, deadline=None)
def test_any_jumble_of_words_is_read_safely_or_not_at_all(words: list[str]) -> None:
    """What is read evaluates, and each number of the question is in the expression."""
    question = " ".join(words)
    expression = read_expression(question)
    if expression is None:
        return
    evaluate(expression.replace("/ 0", "/ 1"))
    for digit in "23":
        assert expression.count(digit) >= words.count(digit), (question, expression)


HOSTILE = [
    "1 " * 240,
    "(" * 480,
    "?" * 10**6,
    "please " * 60,
    "2 + " * 100 + "2",
    "2 ^ " * 100 + "2",
    "square root of " * 30 + "4",
    "-" * 400 + "1",
    "twenty " * 70,
    "one hundred " * 40,
    "1," * 240,
    "a " * 240,
    "negative " * 50 + "1 + 1",
]


@pytest.mark.parametrize("question", HOSTILE, ids=[f"{q[:15]}...{len(q)}" for q in HOSTILE])
def test_hostile_questions_take_no_time(question: str) -> None:
    """Length and nesting are bounded."""
    began = time.perf_counter()
    read_expression(question)
    assert time.perf_counter() - began < 1
