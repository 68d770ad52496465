# %%
#| default_exp tokenizer.chars

# %% [markdown]
# # Characters
# > What a tokenizer asks about a character, answered from the bytes of UTF-8.

# %% [markdown]
# To cut a text into words, a tokenizer asks of each character only whether it is a letter (and of which case), a
# mark, a number or a space. It asks this of every character, so the answer should cost a look into a table. And it
# reads bytes, of which nobody promises that they are well-formed UTF-8.

# %%
#| hide
#| export
import base64, zlib
from functools import cache

import numpy as np
from numba import njit

# %% [markdown]
# ## Classes
#
# Seven classes answer that for each of Unicode's 1,114,112 code points. They come in 3,191 runs of equal class, and
# are stored as the lengths of the runs. The version is 16.0, as in tiktoken's and Hugging Face's matchers; Python's
# own `unicodedata` differs from one Python to the next.

# %%
#| export
OTHER, NUMBER, SPACE, MARK, UPPER, LOWER, LETTER = range(7)  # UPPER: Lu, Lt; LOWER: Ll; LETTER: Lm, Lo, which have no case

# %%
#| hide
#| export
_RUNS = '''
c-rk(Z)h9I72lN-_t_&&Cs}E`VeMtpb(T$)sB0XnGP(!_+hT(oqiLwB))%1?Y8*n1i>Xn_)#&P;Fr=6iQ*$ZT5EB|w4nj&(;gaGWl$sp0<~}$fM`>t3G
~_5X$rq7Qu=`fB9b2*E#KDvvHxJFupEvKldGqG?MuPBJ*=F&q?RYn36JJ7<D1K_ZB36FlhEDKq>PGQ}0zXCW*``NdnOA&iapIPK7FX+rnqywi<5_c}((
_kjvsm}kEPtl6R!MDOiL2A%Mq3jrTk?E{RIeL#FM0o5E*bqT3C92a#)>bx2527L0L!b9=&3S@s}a{Q=UH01<q-wgxlAJd-$seJb@;pjoK<H%%S=nB+@U
2Pf_H;uUXh^dmO~AFxT`iXuQS41MGvpbCe{GoN>xP*ahaaCt^V1PjndY$uII(!_q=@`Pc`J$t*EQPw{>lC1GVDIM8Ei&sb$k-vs+vT7qu9G)85T+!LzY
hm4>HogWYWWYFHhpuNkQvYopgI)P2n>?5_;HCG5S6pU9qdF|$^rA3Jquv9~ru{a!FdVd)Dsssx|2`oQ_2z;FRuo!V7-`*>GFbO&xCTNAQhTnV2wfVX;s
8mhaYD;%F+6K?JmaGQ#_62*0|ZP{Mo8-l*%mam9!qr6+fCxUc>efej?=+cgqe|>I~i6_pNE;i(Obl$$3YWS$Zq0v3ySL!M3gWtg$e}pcde_IsXqQ3<N+
`1`HX*C9$-5Ps=mAPPL+-(P`ugP?00{$&E23?*;zi+#A6t$q#=9T_o`qxRlZ!jFCK*vViAqqY}qfOwmeb5L#2>5>tUv2UQ8=E!}dD!O%cNg!yv$cMRZO
`t&Yn;QY6C7dGK9M*J1SBMqc%Yk)dadmHT$hOkG{#zG2@IKQj20*<|Ao!<(m_tUWt}p@N(SwwDh*wnQ}wJh3z0;3`VT-#DxILQw8S_RRY)?Kl^_mOF&R
OL5>sh{=rU-?AhQ-mfiM*!dX-Ifi4h3t$f%I02{g(jjbv2l0S&4wVU*MXDyWR+WfbGkR(PhVI$zNgRhJb3ZAlRd5k&)2k%5A&$cm=)=^;f01HC{7&-90
qs9^?*?rM~0L?ytDGgm{R9Vlw3%%`jJs~k3(>&ll&&TtLvk*YJ)(nvdMz625MPAao#K4o!*=&k7O4x2Nnzewbm74HBZbu9|REY@ivcT*O|Rtz{Z1v)L+
Q@8?2my%%WS3wH*g5i)m*{hV>5yMoeD#tWq;4~%NU`N1b`PeC-O+8>T^gGsWi>~%YU=C}Ism_#AEZkykN*^0<xMyXReaYyg;apZTlTvN~HzVb)c@?Tt!
nn=HR3O}*i-skcP%DyJgwy)z6fd)Ircb|Tf76-?={HWoKN)iIewz5tSZL%zQsHCWIkkLN=6yps^J;=C8aLSqpWk|uH5OEO-y{(ttJM0=;&*8<?A_^*-x
i(Nc@3Ry><H`X?5chdjw;mE`TfdZSLa~}9zw8h!jE!*1)KG*Lsq5ptw(#UhI~Vzp0XAT17hG^GUn5L457FY@k%*lS7kK=f}!bW!GPsEp!?yH&wudd-v@
tn^GWVU2xyJVVAJfvPMh4g^G*%g?nm|coqE;=e#_5hqcl%uoH(o}Z=Mz!bh-Y{@m9Qf`((X@S6hR7U|LxyEBjM*g`&V8AA@rOkDkK}y|_4{46^~H$mJ`
qW)wBxB+wUe$Wnw$Ru5Y@+Vpy^pk3>spH`&P%>*ApT0hcUS&pj!X?gIv=JRX*IMIkn@MaRFC3P()O-`h^JrPk5011EC!Di0p78GM-Xb>YOOwv3IJwuL0
k_c(`j6&5(g5V;BB}(WA8q0>5CZ!?_sd7rEz&t_iceD<0`4_{v8GZbzHO$iX(cEE+k~9o}3uP{-_d)hz9V;dJ^wGko5Qg}>m4{4bPN~Ra2*!A%myvUX4
YLQiGr14P_KXp>pp56q$9mm<=URQT-im~*GBfog987g~4Wrg({eYfKT+6))Z^0W7K%0I5M<J+O%gs2YRPuue;&qP|LHz4O(5GyM9h+h8i;3d})MXtkwI
FuQ>U-q3+4m6PCCe}o_!gL|ljGA1dthOokc5Yley~tVmDsV%*0IUy_Cn9}d;LF;wwOi&u`Y5;2?71hNB>4mk|GzhX=8!YM5%ZG{YfKrqy5T^quw~5c|v
4~I>tb6l=RO<xviQ*z;!Coghm*3)Z&n-8z6Cfpy*SXNtior6PY}&U^a|EIy!RN;<m9i&4E-+b8h~!!V-%qp-dXn3?@3D-I!Mi7!bm<>z5wgm@qA_6YX*
FDrOtBdnCrXr%j0!FDNv_?d(}hwD#2B9<cNJxApj)zVp_u-IsDnOn^z$HQS13Y@jG9$L%DG$5;#vCHLvcWQ-aKlAyiAqYAy)gLjzQJrM4I4x0Z259`-3
<ha&GS{3)15u*f^M{uAngxwHoy?NPiFv12v#trmya-HUXnYm}58#8k>Uo4Qw`P2g|ey2R)rk_PX)A3hkp-eI6m^lvZaKpM>7*M#qYxi%RtWN0ds4*bmH
c3VroK2LR^wWe{ahaB<k1(eXniz*!Ye4CVrWI+7+e7U3<B-yt=wPwO#ufGcRBkHwVRZiP{89Mn{9Sw;G9L@DX6QVCSL`U9n!g)>X4Z)j=QiLF0xdS@pV
2?qpWx5Xwo!%8&YuXk^@#)-BsW8FzVLPW3%l)l3@)&k>k+FA1a}jQGYk(Xld(R7-+YL_vP8KR$7sMif=GBg<^+N<s`KfO@gKnc+!;8>On88^ZUm%}4^P
O(^zD8zsH@{E<n~;jm=(S>j9VH8)VO{I-MHwMuy7BZEDw(7hgq3rt-7Z>QtZ)9CZhiZeV_~W'''

# %% [markdown]
# The first 256 entries of a table are for a byte as it stands in the text, the class of an ASCII character, or
# `NOT_ASCII`; after them comes an entry for each code point. Most tokenizers do not care about case and marks, and
# use a coarser table.

# %%
#| export
NOT_ASCII = 255

@cache
def class_table(fine: bool) -> np.ndarray:  # uint8 (256 + 0x110000,)
    "The class of every byte and of every code point; all letters are LETTER, and marks OTHER, unless `fine`."
    high, low = np.frombuffer(zlib.decompress(base64.b85decode(_RUNS.replace('\n', ''))),
                              np.uint8).reshape(2, -1)
    classes = np.repeat(low & 7, high.astype(int)*32 + (low >> 3))
    if not fine:
        classes = np.array([OTHER, NUMBER, SPACE, OTHER, LETTER, LETTER, LETTER], np.uint8)[classes]
    return np.concatenate([classes[:128], np.full(128, NOT_ASCII, np.uint8), classes])


# %%
table = class_table(fine=True)
[int(table[256 + ord(c)]) for c in 'aA ٣é漢ʰ\u0301!']

# %% [markdown]
# ## One character
#
# Text is UTF-8, but nobody promises that it is: a byte that does not belong to a well-formed character is a character
# of its own, of class `OTHER`. Every array of text ends with `PAD` zero bytes, so that a look ahead needs no test.

# %%
#| export
PAD = 16  # zero bytes behind every text

def padded(text: bytes) -> np.ndarray:
    "The bytes of a text as an array, with `PAD` zeros behind them."
    return np.frombuffer(text + bytes(PAD), np.uint8)


# %%
#| export
@njit
def _tail(byte): return byte & 0xC0 == 0x80

@njit
def char(text, i, classes):
    "The class of the character at `i`, and its length in bytes."
    a, b, c, d = np.int64(text[i]), np.int64(text[i + 1]), np.int64(text[i + 2]), np.int64(text[i + 3])
    if a < 0x80: return classes[a], 1
    if 0xC2 <= a < 0xE0 and _tail(b): return classes[256 + ((a & 31) << 6 | b & 63)], 2
    if 0xE0 <= a < 0xF0 and _tail(b) and _tail(c):
        point = (a & 15) << 12 | (b & 63) << 6 | c & 63
        if point >= 0x800 and not 0xD800 <= point < 0xE000: return classes[256 + point], 3
    if 0xF0 <= a < 0xF5 and _tail(b) and _tail(c) and _tail(d):
        point = (a & 7) << 18 | (b & 63) << 12 | (c & 63) << 6 | d & 63
        if 0x10000 <= point < 0x110000: return classes[256 + point], 4
    return np.uint8(OTHER), 1


# %% [markdown]
# Almost all time is spent in runs of one class, and in most texts most of them are ASCII: one table look-up a byte.

# %%
#| export
@njit
def run(text, i, n, kind, classes):
    "Where the run of characters of one class that starts at `i` ends."
    while i < n:
        seen = classes[text[i]]
        size = 1
        if seen == NOT_ASCII: seen, size = char(text, i, classes)
        if seen != kind: break
        i += size
    return i


# %% [markdown]
# ## A text that comes in pieces
#
# A file larger than memory is read block by block. Where may a block be cut? A word may depend on all white space, or
# all letters, that follow it, and beyond such a run on few bytes more. So nothing before the last run of a block
# depends on what the next block brings.

# %%
#| export
REACH = 8  # bytes that a word may look ahead beyond a run

@njit
def _family(kind): return SPACE if kind == SPACE else LETTER if kind >= MARK else kind

@njit(nogil=True, cache=True)
def settled(text, n, classes):
    "A word of `text[:n]` that ends here or before stays as it is, whatever follows."
    i, family = n, -1
    while i > 0:
        j = i - 1
        while j > 0 and i - j < 4 and _tail(text[j]): j -= 1
        kind, size = char(text, j, classes)
        if size != i - j: j, kind = i - 1, np.uint8(OTHER)
        if family == -1 and i < n - 4: family = _family(kind)
        elif family != -1 and _family(kind) != family: break
        i = j
    return max(i - REACH, 0)

# %% [markdown]
# ## What this does not show
#
# Characters that Unicode added after version 16.0 are `OTHER`.
