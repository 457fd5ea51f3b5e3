"""The published names of the operators of neural networks and images: how each is called, and its stages with their axes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import fluorite as fl

Published = dict[str, tuple[Callable[..., Any], dict[str, fl.Spec], str]]
X, SIGNAL, IMAGE = fl.f32("n", "features=8"), fl.f32("n", 4, "w"), fl.f32("n", 4, "h", "w")
VOLUME, IDS = fl.f32("n", 4, "d", "h", "w"), fl.i32("n")
ON_IMAGES = {"x": IMAGE}
W1, W2, W3 = fl.f32(6, 4, 3), fl.f32(6, 4, 3, 3), fl.f32(6, 4, 3, 3, 3)
T1, T2, T3 = fl.f32(4, 6, 3), fl.f32(4, 6, 3, 3), fl.f32(4, 6, 3, 3, 3)
PAIR = {"x": X, "y": X}

NETWORKS: Published = {
    "conv1d": (lambda x, w: fl.conv1d(x, w), {"x": SIGNAL, "w": W1}, "conv1d[n o x | c kx]"),
    "conv2d": (lambda x, w: fl.conv2d(x, w), {"x": IMAGE, "w": W2}, "conv2d[n o y x | c ky kx]"),
    "conv3d": (lambda x, w: fl.conv3d(x, w), {"x": VOLUME, "w": W3}, "conv3d[n o z y x | c kz ky kx]"),
    "conv_transpose1d": (lambda x, w: fl.conv_transpose1d(x, w), {"x": SIGNAL, "w": T1}, "conv_transpose1d[n o x | c kx]"),
    "conv_transpose2d": (lambda x, w: fl.conv_transpose2d(x, w, stride=2), {"x": IMAGE, "w": T2}, "conv_transpose2d[n o y x | c ky kx]"),
    "conv_transpose3d": (lambda x, w: fl.conv_transpose3d(x, w), {"x": VOLUME, "w": T3}, "conv_transpose3d[n o z y x | c kz ky kx]"),
    "unfold": (lambda x: fl.unfold(x, 3), ON_IMAGES, "unfold[n c ky kx y x]"),
    "fold": (lambda x: fl.fold(x, 4), {"x": fl.f32("n", 2, 3, 3, 2, 2)}, "fold[n c y x | ky kx]"),
    "max_pool1d": (lambda x: fl.max_pool1d(x, 2), {"x": SIGNAL}, "max_pool1d[n c x | kx]"),
    "max_pool2d": (lambda x: fl.max_pool2d(x, 2), ON_IMAGES, "max_pool2d[n c y x | ky kx]"),
    "max_pool3d": (lambda x: fl.max_pool3d(x, 2), {"x": VOLUME}, "max_pool3d[n c z y x | kz ky kx]"),
    "avg_pool1d": (lambda x: fl.avg_pool1d(x, 2), {"x": SIGNAL}, "avg_pool1d/sum[n c x | kx], avg_pool1d[n c x]"),
    "avg_pool2d": (lambda x: fl.avg_pool2d(x, 2), ON_IMAGES, "avg_pool2d/sum[n c y x | ky kx], avg_pool2d[n c y x]"),
    "avg_pool3d": (lambda x: fl.avg_pool3d(x, 2), {"x": VOLUME}, "avg_pool3d/sum[n c z y x | kz ky kx], avg_pool3d[n c z y x]"),
    "lp_pool1d": (lambda x: fl.lp_pool1d(x, 2), {"x": SIGNAL}, "lp_pool1d/sum[n c x | kx], lp_pool1d[n c x]"),
    "lp_pool2d": (lambda x: fl.lp_pool2d(x, 2), ON_IMAGES, "lp_pool2d/sum[n c y x | ky kx], lp_pool2d[n c y x]"),
    "global_avg_pool1d": (lambda x: fl.global_avg_pool1d(x), {"x": SIGNAL}, "global_avg_pool1d/sum[n i1 | w], global_avg_pool1d[n i1]"),
    "global_avg_pool2d": (lambda x: fl.global_avg_pool2d(x), ON_IMAGES, "global_avg_pool2d/sum[n i1 | h w], global_avg_pool2d[n i1]"),
    "global_avg_pool3d": (
        lambda x: fl.global_avg_pool3d(x), {"x": VOLUME},
        "global_avg_pool3d/sum[n i1 | d h w], global_avg_pool3d[n i1]",
    ),
    "global_max_pool1d": (lambda x: fl.global_max_pool1d(x), {"x": SIGNAL}, "global_max_pool1d[n i1 | w]"),
    "global_max_pool2d": (lambda x: fl.global_max_pool2d(x), ON_IMAGES, "global_max_pool2d[n i1 | h w]"),
    "global_max_pool3d": (lambda x: fl.global_max_pool3d(x), {"x": VOLUME}, "global_max_pool3d[n i1 | d h w]"),
    "adaptive_avg_pool1d": (
        lambda x: fl.adaptive_avg_pool1d(x, 3), {"x": SIGNAL},
        "adaptive_avg_pool1d/sum[n c x | kx], adaptive_avg_pool1d[n c x]",
    ),
    "adaptive_avg_pool2d": (
        lambda x: fl.adaptive_avg_pool2d(x, 3), ON_IMAGES,
        "adaptive_avg_pool2d/sum[n c y x | ky kx], adaptive_avg_pool2d[n c y x]",
    ),
    "adaptive_avg_pool3d": (
        lambda x: fl.adaptive_avg_pool3d(x, 3), {"x": VOLUME},
        "adaptive_avg_pool3d/sum[n c z y x | kz ky kx], adaptive_avg_pool3d[n c z y x]",
    ),
    "adaptive_max_pool1d": (lambda x: fl.adaptive_max_pool1d(x, 3), {"x": SIGNAL}, "adaptive_max_pool1d[n c x | kx]"),
    "adaptive_max_pool2d": (lambda x: fl.adaptive_max_pool2d(x, 3), ON_IMAGES, "adaptive_max_pool2d[n c y x | ky kx]"),
    "adaptive_max_pool3d": (lambda x: fl.adaptive_max_pool3d(x, 3), {"x": VOLUME}, "adaptive_max_pool3d[n c z y x | kz ky kx]"),
    "batch_norm": (lambda x, m: fl.batch_norm(x, mean=m, var=m), {"x": IMAGE, "m": fl.f32(4)}, "batch_norm[n i1 h w]"),
    "group_norm": (
        lambda x: fl.group_norm(x, 2), ON_IMAGES,
        "group_norm/mean/sum[n g | c h w], group_norm/mean[n g], group_norm/var/sum[n g | c h w], group_norm/var[n g], "
        "group_norm[n i1 h w]",
    ),
    "instance_norm": (
        lambda x: fl.instance_norm(x), ON_IMAGES,
        "instance_norm/mean/sum[n i1 | h w], instance_norm/mean[n i1], instance_norm/var/sum[n i1 | h w], "
        "instance_norm/var[n i1], instance_norm[n i1 h w]",
    ),
    "local_response_norm": (
        lambda x: fl.local_response_norm(x, 3), ON_IMAGES,
        "local_response_norm/sum[n i1 h w | k], local_response_norm[n i1 h w]",
    ),
    "weight_standardization": (
        lambda x: fl.weight_standardization(x), {"x": fl.f32("out=6", "in=4", "ky=3", "kx=3")},
        "weight_standardization/mean/sum[out | in ky kx], weight_standardization/mean[out], "
        "weight_standardization/var/sum[out | in ky kx], weight_standardization/var[out], weight_standardization[out in ky kx]",
    ),
    "dropout": (
        lambda x, k: fl.dropout(x, 0.5, key=k), {"x": X, "k": fl.u32(2)},
        "dropout/start[i], dropout/rounds[i], dropout/rounds_2[i], dropout/rounds_3[i], dropout/rounds_4[i], dropout/block[i], "
        "dropout[n features]",
    ),
    "softmin": (
        lambda x: fl.softmin(x), {"x": X},
        "softmin/negative[n features], softmin/softmax/max[n | features], softmin/softmax/exp[n features], "
        "softmin/softmax/sum[n | features], softmin/softmax[n features]",
    ),
    "prelu": (lambda x, y: fl.prelu(x, y), PAIR, "prelu[n features]"),
    "threshold": (lambda x: fl.threshold(x, above=1, value=0), {"x": X}, "threshold[n features]"),
    "glu": (lambda x: fl.glu(x), {"x": X}, "glu[n features]"),
    "swiglu": (lambda x: fl.swiglu(x), {"x": X}, "swiglu[n features]"),
    "geglu": (lambda x: fl.geglu(x), {"x": X}, "geglu[n features]"),
    "mse_loss": (lambda x, y: fl.mse_loss(x, y), PAIR, "mse_loss/each[n features], mse_loss/mean/sum[ | n features], mse_loss/mean[]"),
    "l1_loss": (lambda x, y: fl.l1_loss(x, y, reduction="none"), PAIR, "l1_loss[n features]"),
    "huber_loss": (lambda x, y: fl.huber_loss(x, y, reduction="sum"), PAIR, "huber_loss/each[n features], huber_loss/sum[ | n features]"),
    "smooth_l1_loss": (
        lambda x, y: fl.smooth_l1_loss(x, y), PAIR,
        "smooth_l1_loss/each[n features], smooth_l1_loss/mean/sum[ | n features], smooth_l1_loss/mean[]",
    ),
    "binary_cross_entropy": (
        lambda x, y: fl.binary_cross_entropy(x, y), PAIR,
        "binary_cross_entropy/each[n features], binary_cross_entropy/mean/sum[ | n features], binary_cross_entropy/mean[]",
    ),
    "binary_cross_entropy_with_logits": (
        lambda x, y: fl.binary_cross_entropy_with_logits(x, y), PAIR,
        "binary_cross_entropy_with_logits/each[n features], binary_cross_entropy_with_logits/mean/sum[ | n features], "
        "binary_cross_entropy_with_logits/mean[]",
    ),
    "focal_loss": (
        lambda x, y: fl.focal_loss(x, y), PAIR,
        "focal_loss/each[n features], focal_loss/mean/sum[ | n features], focal_loss/mean[]",
    ),
    "kl_div": (lambda x, y: fl.kl_div(x, y, reduction="batchmean"), PAIR, "kl_div/each[n features], kl_div/sum[ | n features], kl_div[]"),
    "hinge_loss": (
        lambda x, y: fl.hinge_loss(x, y), PAIR,
        "hinge_loss/each[n features], hinge_loss/mean/sum[ | n features], hinge_loss/mean[]",
    ),
    "hinge_embedding_loss": (
        lambda x, y: fl.hinge_embedding_loss(x, y), PAIR,
        "hinge_embedding_loss/each[n features], hinge_embedding_loss/mean/sum[ | n features], hinge_embedding_loss/mean[]",
    ),
    "cosine_similarity": (
        lambda x, y: fl.cosine_similarity(x, y), PAIR,
        "cosine_similarity/dot[n | features], cosine_similarity/first[n | features], cosine_similarity/second[n | features], "
        "cosine_similarity[n]",
    ),
    "cosine_embedding_loss": (
        lambda x, y, k: fl.cosine_embedding_loss(x, y, k), {**PAIR, "k": IDS},
        "cosine_embedding_loss/dot[n | features], cosine_embedding_loss/first[n | features], "
        "cosine_embedding_loss/second[n | features], cosine_embedding_loss/cosine[n], cosine_embedding_loss/each[n], "
        "cosine_embedding_loss/mean/sum[ | n], cosine_embedding_loss/mean[]",
    ),
    "triplet_margin_loss": (
        lambda x, y: fl.triplet_margin_loss(x, y, x), PAIR,
        "triplet_margin_loss/near[n | features], triplet_margin_loss/far[n | features], triplet_margin_loss/each[n], "
        "triplet_margin_loss/mean/sum[ | n], triplet_margin_loss/mean[]",
    ),
    "cross_entropy": (
        lambda x, k: fl.cross_entropy(x, k), {"x": X, "k": IDS},
        "cross_entropy/log_softmax/max[n | features], cross_entropy/log_softmax/shift[n], "
        "cross_entropy/log_softmax/sum[n | features], cross_entropy/log_softmax[n features], cross_entropy/each[n], "
        "cross_entropy/weight[n], cross_entropy/sum[ | n], cross_entropy/mass[ | n], cross_entropy[]",
    ),
    "nll_loss": (
        lambda x, k: fl.nll_loss(x, k, ignore_index=None), {"x": X, "k": IDS},
        "nll_loss/each[n], nll_loss/mean/sum[ | n], nll_loss/mean[]",
    ),
}  # fmt: skip

HEADS = fl.f32("n", 2, "t", 8)
ATTENTION: Published = {
    "attention": (
        lambda q: fl.attention(q, q, q, causal=True), {"q": fl.f32("n", "t", 8)},
        "attention/scores[n i j | k], attention/scaled[n i j], attention/softmax/masked[n i j], attention/softmax/max[n i | j], "
        "attention/softmax/exp[n i j], attention/softmax/sum[n i | j], attention/softmax[n i j], attention[n i j | k]",
    ),
    "cached_attention": (
        lambda q, p: fl.cached_attention(q, q, q, q, q, p), {"q": fl.f32("n", "t", 8), "p": fl.i32()},
        "cached_attention/keys[n t i2], cached_attention/values[n t i2], cached_attention/scores[n i j | k], "
        "cached_attention/scaled[n i j], cached_attention/softmax/masked[n i j], cached_attention/softmax/max[n i | j], "
        "cached_attention/softmax/exp[n i j], cached_attention/softmax/sum[n i | j], cached_attention/softmax[n i j], "
        "cached_attention/attended[n i j | k]",
    ),
    "rotary": (lambda q: fl.rotary(q), {"q": HEADS}, "rotary/cos[t pair], rotary/sin[t pair], rotary[n i1 t i3]"),
    "sinusoidal_positions": (lambda q: fl.sinusoidal_positions(q.shape[2], 8), {"q": HEADS}, "sinusoidal_positions[t c]"),
    "alibi": (lambda q: fl.alibi(4, q.shape[2], q.shape[2]), {"q": HEADS}, "alibi[h i j]"),
}  # fmt: skip

LINES = {"x": fl.c64("h", "w=12")}
FOURIER: Published = {
    "fft": (lambda x: fl.fft(x), LINES, "fft/factor_4[part h k j], fft/factor_3[part h k], result[h w part]"),
    "ifft": (lambda x: fl.ifft(x), LINES, "ifft/factor_4[part h k j], ifft/factor_3[part h k], result[h w part]"),
    "rfft": (
        lambda x: fl.rfft(x, axis=1), {"x": fl.f32("h", 14)},
        "rfft/factor_2[part h k j], rfft/factor_7[part h k | s], result[h i1 part]",
    ),
    "hfft": (
        lambda x: fl.hfft(x, 8), LINES, "hfft/conj[h w], hfft/irfft/whole[part h w], hfft/irfft/factor_4[part h k j], hfft/irfft[h w]",
    ),
    "ihfft": (
        lambda x: fl.ihfft(x, 8), {"x": fl.f32("h", "w=12")},
        "ihfft/rfft/factor_4[part h k j], ihfft/rfft/factor_2[part h k], ihfft/conj[h w], result[h w i2]",
    ),
    "irfft": (
        lambda x: fl.irfft(x, 8), LINES, "irfft/whole[part h w], irfft/factor_4[part h k j], irfft[h w]",
    ),
    "fft2": (
        lambda x: fl.fft2(x), {"x": fl.c64(3, 2)},
        "fft2/along_x/factor_2[part i0 k], fft2/along_y/factor_3[part k i1], result[i0 i1 part]",
    ),
    "ifft2": (
        lambda x: fl.ifft2(x), {"x": fl.c64(3, 2)},
        "ifft2/along_x/factor_2[part i0 k], ifft2/along_y/factor_3[part k i1], result[i0 i1 part]",
    ),
    "fftn": (
        lambda x: fl.fftn(x), {"x": fl.c64(3, 2)},
        "fftn/axis_1/factor_2[part i0 k], fftn/axis_0/factor_3[part k i1], result[i0 i1 part]",
    ),
    "ifftn": (lambda x: fl.ifftn(x, (2,)), {"x": fl.c64(3, 2)}, "ifftn/axis_1/factor_2[part i0 k], result[i0 i1 part]"),
    "rfftn": (
        lambda x: fl.rfftn(x), {"x": fl.f32(3, 2)},
        "rfftn/axis_1/factor_2[part i0 k], rfftn/axis_0/factor_3[part k i1], result[i0 i1 part]",
    ),
    "irfftn": (
        lambda x: fl.irfftn(x), {"x": fl.c64(3, 2)},
        "irfftn/axis_0/factor_3[part k i1], irfftn/axis_1/whole[part i0 i1], irfftn/axis_1[i0 i1]",
    ),
    "fftfreq": (lambda: fl.fftfreq(4), {}, "fftfreq[k]"),
    "rfftfreq": (lambda: fl.rfftfreq(4), {}, "rfftfreq[k]"),
}  # fmt: skip

COLOUR, PLANE = {"x": fl.f32("n", 3, "h", "w")}, {"x": fl.f32("h", "w")}
IMAGES: Published = {
    "resize": (
        lambda x: fl.resize(x, (5, 6)), {"x": IMAGE},
        "resize/weights_y[i ky], resize/rows[n i1 h w | ky], resize/weights_x[i kx], resize[n i1 h w | kx]",
    ),
    "grid_sample": (
        lambda x, g: fl.grid_sample(x, g), {"x": IMAGE, "g": fl.f32("n", 5, 6, 2)},
        "grid_sample/across[n y x], grid_sample/down[n y x], grid_sample[n c y x]",
    ),
    "affine_grid": (lambda x: fl.affine_grid(x, (5, 6)), {"x": fl.f32("n", 2, 3)}, "affine_grid[n y x c]"),
    "warp_affine": (
        lambda x, m: fl.warp_affine(x, m), {"x": IMAGE, "m": fl.f32(2, 3)},
        "warp_affine/across[n y x], warp_affine/down[n y x], warp_affine[n c y x]",
    ),
    "warp": (
        lambda x, f: fl.warp(x, f), {"x": IMAGE, "f": fl.f32("n", 2, "h", "w")},
        "warp/across[n y x], warp/down[n y x], warp[n c y x]",
    ),
    "rgb_to_gray": (lambda x: fl.rgb_to_gray(x), COLOUR, "rgb_to_gray[n i1 h w]"),
    "rgb_to_yuv": (lambda x: fl.rgb_to_yuv(x), COLOUR, "rgb_to_yuv[n i1 h w | k]"),
    "yuv_to_rgb": (lambda x: fl.yuv_to_rgb(x), COLOUR, "yuv_to_rgb[n i1 h w | k]"),
    "rgb_to_ycbcr": (lambda x: fl.rgb_to_ycbcr(x), COLOUR, "rgb_to_ycbcr/mixed[n i1 h w | k], rgb_to_ycbcr[n i1 h w]"),
    "ycbcr_to_rgb": (lambda x: fl.ycbcr_to_rgb(x), COLOUR, "ycbcr_to_rgb/mixed[n i1 h w | k], ycbcr_to_rgb[n i1 h w]"),
    "rgb_to_hsv": (
        lambda x: fl.rgb_to_hsv(x), COLOUR,
        "rgb_to_hsv/hue[n h w], rgb_to_hsv/saturation[n h w], rgb_to_hsv/value[n h w], rgb_to_hsv[n i1 h w]",
    ),
    "hsv_to_rgb": (
        lambda x: fl.hsv_to_rgb(x), COLOUR,
        "hsv_to_rgb/red[n h w], hsv_to_rgb/green[n h w], hsv_to_rgb/blue[n h w], hsv_to_rgb[n i1 h w]",
    ),
    "rgb_to_lab": (
        lambda x: fl.rgb_to_lab(x), COLOUR,
        "rgb_to_lab/linear[n i1 h w], rgb_to_lab/xyz[n i1 h w | k], rgb_to_lab/cube_root[n i1 h w], rgb_to_lab[n i1 h w]",
    ),
    "lab_to_rgb": (
        lambda x: fl.lab_to_rgb(x), COLOUR,
        "lab_to_rgb/cube_root[n i1 h w], lab_to_rgb/xyz[n i1 h w], lab_to_rgb/linear[n i1 h w | k], lab_to_rgb[n i1 h w]",
    ),
    "srgb_to_linear": (lambda x: fl.srgb_to_linear(x), COLOUR, "srgb_to_linear[n i1 h w]"),
    "linear_to_srgb": (lambda x: fl.linear_to_srgb(x), COLOUR, "linear_to_srgb[n i1 h w]"),
    "gaussian_filter": (lambda x: fl.gaussian_filter(x, 1.0), PLANE, "gaussian_filter/rows[h w | k], gaussian_filter[h w | k]"),
    "box_filter": (lambda x: fl.box_filter(x, 3), PLANE, "box_filter/rows[h w | k], box_filter[h w | k]"),
    "sobel": (lambda x: fl.sobel(x), PLANE, "sobel/smooth[h w | k], sobel[h w | k]"),
    "bilateral_filter": (
        lambda x: fl.bilateral_filter(x, 2, 1.0, 0.1), PLANE,
        "bilateral_filter/weighted[h w | ky kx], bilateral_filter/weights[h w | ky kx], bilateral_filter[h w]",
    ),
    "median_filter": (
        lambda x: fl.median_filter(x), PLANE,
        "median_filter/column_0[h w], median_filter/column_1[h w], median_filter/column_2[h w], median_filter[h w]",
    ),
    "erode": (lambda x: fl.erode(x), PLANE, "erode/rows[h w | k], erode[h w | k]"),
    "dilate": (lambda x: fl.dilate(x, [[0, 1], [1, 1]]), PLANE, "dilate[h w]"),
    "opening": (
        lambda x: fl.opening(x), PLANE,
        "opening/eroded_rows[h w | k], opening/eroded[h w | k], opening/rows[h w | k], opening[h w | k]",
    ),
    "closing": (
        lambda x: fl.closing(x), PLANE,
        "closing/dilated_rows[h w | k], closing/dilated[h w | k], closing/rows[h w | k], closing[h w | k]",
    ),
}  # fmt: skip
