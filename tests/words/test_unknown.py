import pytest

from engine.data.words import parse, tokenize
from engine.text.encoder import Encoder
from engine.text.tokenizer import SAMPLE, known, learn
from tests.words.tiny import ARABIC, ENGLISH, JAPANESE, KOREAN


def wordpiece(words: list[str]) -> object:
    from tokenizers import Tokenizer, models, pre_tokenizers

    vocabulary = {word: number for number, word in enumerate(["[UNK]", *words])}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return tokenizer


class TestKnown:
    def test_words_without_a_token_and_words_spelt_out_are_counted_and_nothing_to_read_is_no_trouble(self) -> None:
        tokenizer = wordpiece(["soap", "bar", "s", "##o", "##a", "##p", "##s", ",", "a"])
        found = known(tokenizer, ["soap bar, a", "soaps", "sap paps"])  # type: ignore[arg-type]
        # soap bar a: known; soap ##s: known; s ##a ##p: spelt; paps: missing; the comma is no word
        assert (found.words, found.missing, found.spelt) == (6, 1, 1)
        assert found.share == pytest.approx(2 / 6)
        assert not found.tolerable
        assert found.sentence("minilm").endswith("use --encoder scratch")
        # titles and brands take turns: of many, some of both are looked at
        many = known(tokenizer, ["soap", "sap"] * SAMPLE)  # type: ignore[arg-type]
        assert many.words == SAMPLE and many.share == pytest.approx(1 / 2, abs=0.01)
        found = known(wordpiece(["a"]), ["", "!"])  # type: ignore[arg-type]
        assert found.words == 0 and found.share == 0 and found.tolerable

    @pytest.mark.parametrize("texts", [KOREAN, JAPANESE, ARABIC], ids=["korean", "japanese", "arabic"])
    def test_minilm_does_not_know_other_scripts_whatever_its_tokenizer_makes_of_them(
        self, minilm: Encoder, texts: list[str]
    ) -> None:
        assert known(minilm.tokenizer, texts).share > 0.5

    def test_minilm_knows_english(self, minilm: Encoder) -> None:
        assert known(minilm.tokenizer, ENGLISH).share == 0

    @pytest.mark.parametrize("texts", [KOREAN, JAPANESE, ARABIC], ids=["korean", "japanese", "arabic"])
    def test_a_tokenizer_learnt_from_a_catalogue_knows_its_words(self, texts: list[str]) -> None:
        found = known(learn(texts * 10, 2000), texts)
        assert found.missing == 0
        assert found.share < 0.05

    def test_marks_belong_to_the_words_that_are_learnt(self) -> None:
        """Vowels of Hindi and Thai; beside them other words are what they are without."""
        texts = ["दिल कहानी", "ความรัก", "Don't, 3 crème"]
        tokenizer, without = learn(texts * 10, 2000), learn(texts[2:] * 10, 2000)
        found = known(tokenizer, texts)
        assert (found.words, found.share) == (7, 0)
        assert [len(tokenizer.encode(text, add_special_tokens=False)) for text in texts] == [2, 1, 5]
        assert tokenizer.encode(texts[2]).tokens == without.encode(texts[2]).tokens

    def test_no_word_ends_in_half_a_letter(self) -> None:
        words = tokenize([[("title", "日焼け止め")]], learn(ENGLISH, 300), ["title"], 11)
        assert words.by_word()["word"].to_pylist() == ["title", "日"]

    def test_no_word_of_a_catalogue_is_a_special_token(self, minilm: Encoder) -> None:
        words = "[PAD] [CLS] [SEP] [MASK] [UNK]"
        learnt = learn(ENGLISH, 300)
        for tokenizer in (learnt, parse(learnt.to_str()), minilm.tokenizer):
            tokens = tokenizer.encode(words, add_special_tokens=False).ids
            assert not {tokenizer.token_to_id(word) for word in words.split()} & {*tokens}

    def test_a_tokenizer_over_bytes_has_no_unknown_token(self) -> None:
        assert known(learn(KOREAN, 300), JAPANESE).missing == 0
